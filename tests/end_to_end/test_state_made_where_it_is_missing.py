"""State that the first step to need it makes, where steps are taken on some paths only.

However many steps may be the first, the state is one object while tracing: what is recorded for a step, and how often
its paths are traced, is the same for each. Names that keep an earlier state, and state that is taken away and made
again, tell two states apart.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import dy2static
from runtime.tracer.control import cond
from runtime.tracer.control.branches import trace_path
from tests.oracle import check, check_saved

Step = Callable[[Any, torch.Tensor], Any]


def missing_key(state: Any, row: torch.Tensor) -> Any:
    if "p" not in state:
        state["p"] = {"a": row * 0, "n": 0}
    state["p"]["a"] = state["p"]["a"] + row
    state["p"]["n"] += 1
    return state["p"]["a"]


def written_in_place(state: Any, row: torch.Tensor) -> Any:
    if "p" not in state:
        state["p"] = {}
    own = state["p"]
    if len(own) == 0:
        own["step"] = torch.tensor(0.0)
        own["a"] = torch.zeros_like(row)
    own["step"] += 1
    own["a"].add_(row.detach())
    return own["a"] / own["step"]


def several_parameters(state: Any, row: torch.Tensor) -> Any:
    read = []
    for name in "pq":
        if name not in state:
            state[name] = {}
        own = state[name]
        if not own:
            own["a"], own["b"] = torch.zeros_like(row), row * 2
        read.append([own["a"], own["b"]])
    for a, b in read:
        a.add_(row.detach())
        b.mul_(0.5)
    return state["p"]["a"] + state["q"]["b"]


def list_in_a_dict(state: Any, row: torch.Tensor) -> Any:
    if "p" not in state:
        state["p"] = []
    state["p"].append(row)
    return state["p"][-1]


def of_a_class(state: Any, row: torch.Tensor) -> Any:
    if "p" not in state:
        state["p"] = OrderedDict(a=row * 0)
    state["p"]["a"] = state["p"]["a"] + row
    return state["p"]["a"]


def ends(state: Any, row: torch.Tensor) -> Any:
    if "p" not in state:
        state["p"] = deque([row * 0], maxlen=3)
    state["p"].append(row)
    return state["p"][0]


def inside_another(state: Any, row: torch.Tensor) -> Any:
    if "p" not in state:
        state["p"] = {"q": {"r": [row * 0]}}
    state["p"]["q"]["r"][0] = state["p"]["q"]["r"][0] + row
    return state["p"]["q"]["r"][0]


def kept_by_another_name(state: Any, row: torch.Tensor) -> Any:
    if "p" not in state:
        state["p"] = {"a": row * 0}
    if "first" not in state:
        state["first"] = state["p"]
    state["p"]["a"] = state["p"]["a"] + row
    return state["first"]["a"]


STEPS: dict[str, Step] = {one.__name__: one for one in (
    missing_key, written_in_place, several_parameters, list_in_a_dict, of_a_class, ends, inside_another,
    kept_by_another_name)}  # fmt: skip


def on_paths(step: Step, rows: int) -> Callable[[torch.Tensor], Any]:
    """Each row takes a step, if its sum is positive."""

    def function(x: torch.Tensor) -> Any:
        state: dict[str, Any] = {}
        last: Any = None
        for number in range(rows):
            if x[number].sum() > 0:
                last = step(state, x[number])
        return state, last

    return function


def taken_away(step: Step, rows: int) -> Callable[[torch.Tensor], Any]:
    """A row may take the state away; what was there is kept by another name, and told from what is made after it."""

    def function(x: torch.Tensor) -> Any:
        state: dict[str, Any] = {}
        kept: Any = None
        same: list[Any] = []
        for number in range(rows):
            if x[number].sum() > 0:
                step(state, x[number])
            if x[number, 0] > 0.8:
                kept = state.pop("p", None)
            same.append(kept is not None and kept is state.get("p"))
            same.append(kept is None)
        return state, kept, same

    return function


def told_apart(step: Step, rows: int) -> Callable[[torch.Tensor], Any]:
    """Two dicts, of which each row has one."""

    def function(x: torch.Tensor) -> Any:
        first: dict[str, Any] = {}
        second: dict[str, Any] = {}
        for number in range(rows):
            if x[number].sum() > 0:
                step(first, x[number])
            else:
                step(second, x[number])
        return first, second, first.get("p") is second.get("p")

    return function


def moved(step: Step, rows: int) -> Callable[[torch.Tensor], Any]:
    """A row may move the state to another dict, where it is seen to change no more."""

    def function(x: torch.Tensor) -> Any:
        state: dict[str, Any] = {}
        other: dict[str, Any] = {}
        for number in range(rows):
            if x[number].sum() > 0:
                step(state, x[number])
            elif x[number, 0] > 0 and "p" in state:
                other["p"] = state["p"]
                del state["p"]
        return state, other, "p" in other and "p" in state and other["p"] is state["p"]

    return function


def in_a_loop(step: Step, rows: int) -> Callable[[torch.Tensor], Any]:
    """The rows one after another, in a loop that a tensor ends."""

    def function(x: torch.Tensor) -> Any:
        state: dict[str, Any] = {}
        number = 0
        while x[number].sum() < 4:
            if x[number].sum() > 0:
                step(state, x[number])
            number += 1
            if number == rows:
                number = 0
                x = x + 1
        return state, number

    return function


def inputs(rows: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, 2, generator=torch.Generator().manual_seed(seed)).requires_grad_()


WAYS = {one.__name__: one for one in (on_paths, taken_away, told_apart, moved)}


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("way", WAYS)
def test_what_runs_have(way: str, name: str, tmp_path: Path) -> None:
    calls = [(inputs(4, seed),) for seed in range(8)]
    calls += [(torch.full((4, 2), sign).requires_grad_(),) for sign in (1.0, -1.0)]
    converted = check(WAYS[way](STEPS[name], 4), *calls)
    check_saved(WAYS[way](STEPS[name], 4), converted, tmp_path / "saved", *calls[:3])


@pytest.mark.parametrize("name", ["missing_key", "written_in_place", "several_parameters", "of_a_class"])
def test_a_loop(name: str) -> None:
    check(in_a_loop(STEPS[name], 3), *((inputs(3, seed).detach(),) for seed in range(5)))


def recorded(function: Callable[..., Any], *args: Any) -> tuple[int, int]:
    """How many Operators a call records, and how many paths it traces."""
    converted = dy2static.to_static(function)
    TRACED.clear()
    with mock.patch.object(cond, "trace_path", _counted):
        converted(*args)
    return sum(1 for _ in converted.programs[-1].block.walk()), len(TRACED)


TRACED: list[str] = []


def _counted(session: Any, kind: str, *args: Any) -> Any:
    TRACED.append(kind)
    return trace_path(session, kind, *args)


def require_alike(make: Callable[[int], Callable[..., Any]], first: int = 4) -> None:
    """What another step costs does not depend on how many there are."""
    counts = [recorded(make(rows), inputs(rows, 3)) for rows in (first, first + 3, first + 6)]
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(counts, counts[1:])]
    assert steps[0] == steps[1], counts


@pytest.mark.parametrize("name", [name for name in STEPS if name != "kept_by_another_name"])
def test_each_step_costs_the_same(name: str) -> None:
    require_alike(lambda rows: on_paths(STEPS[name], rows))


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, amsgrad=True),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.1, centered=True),
}


def training(kind: str, rows: Any) -> Callable[[torch.Tensor], Any]:
    """Steps of an optimizer that a tensor may leave out; ``rows``: what the loop goes over."""

    def function(x: torch.Tensor) -> Any:
        w, v = nn.Parameter(torch.ones(2)), nn.Parameter(torch.full((2,), 0.5))
        optimizer = OPTIMIZERS[kind]([w, v])
        losses = []
        for number in rows:
            loss = ((w * x[number] - v) ** 2).sum()
            loss.backward()
            if loss > 0.5:
                optimizer.step()
                losses.append(loss.item())
            optimizer.zero_grad()
        return w.detach(), v.detach(), losses

    return function


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("unrolled", [True, False])
def test_optimizers_whose_steps_are_left_out(kind: str, unrolled: bool) -> None:
    rows = list(range(5)) if unrolled else range(5)
    calls = [(inputs(5, seed).detach() * scale,) for seed, scale in enumerate((1, 0.1, 2))]
    check(training(kind, rows), *calls, tolerance=1e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_each_step_of_an_optimizer_costs_the_same(kind: str) -> None:
    require_alike(lambda rows: training(kind, list(range(rows))), first=3)


def accumulated(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Gradients of two batches for a step, which is left out where they are small."""
    model = nn.Linear(x.shape[1], 1)
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses, skipped = [], 0
    for start in range(0, len(x), 2):
        loss = F.mse_loss(model(x[start : start + 2]).squeeze(-1), y[start : start + 2]) / 2
        loss.backward()
        if (start // 2 + 1) % 2 == 0:
            if nn.utils.clip_grad_norm_(model.parameters(), 1.0) > 0.5:
                optimizer.step()
                losses.append(loss.item())
            else:
                skipped += 1
            optimizer.zero_grad()
    return model.weight.detach(), losses, skipped


def test_gradients_of_several_batches_for_a_step() -> None:
    def batch(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(rows, 3, generator=generator), torch.randn(rows, generator=generator)

    check(accumulated, batch(8, 0), batch(12, 1), batch(5, 2), tolerance=1e-5)


def state_of_each_key(x: torch.Tensor) -> Any:
    state: dict[int, dict[str, torch.Tensor]] = defaultdict(dict)
    for number in range(4):
        if x[number].sum() > 0:
            for key in range(2):
                own = state[key]
                if len(own) == 0:
                    own["a"] = x[number] * key
                own["a"] = own["a"] + x[number]
    return dict(state), len(state)


def test_a_factory_makes_what_is_missing() -> None:
    check(state_of_each_key, *((inputs(4, seed),) for seed in range(6)))
