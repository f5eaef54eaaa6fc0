"""What a checkpointed function looks up, changed between the call and ``backward()``, where eager calls it again: the
gradient is eager's, or backward raises and says what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import dy2static
from runtime.errors import TraceError

RATE = 2.0
Region = Callable[[Any, torch.Tensor], torch.Tensor]


def curved(x: torch.Tensor) -> torch.Tensor:
    """Whose gradient needs what is computed inside."""
    return torch.exp(torch.sin(x))


class Model(nn.Module):
    def __init__(self, region: Region, how: str, reentrant: bool) -> None:
        super().__init__()
        self.region, self.how, self.reentrant = region, how, reentrant
        self.scale, self.table = 2.0, {"k": 2.0}
        self.weight = nn.Parameter(torch.full((3,), 0.7))
        self.register_buffer("buffer", torch.tensor(2.0))
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return self.region(self, x)

    def outer(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, torch.sin(x), use_reentrant=self.reentrant) * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "straight":
            return checkpoint(self.inner, x * 1, use_reentrant=self.reentrant) * 2
        if self.how == "nested":
            return checkpoint(self.outer, x * 1, use_reentrant=self.reentrant)
        if self.how == "branch":
            y = x * 2
            if x.sum() > 0:
                y = checkpoint(self.inner, y, use_reentrant=self.reentrant)
            return y
        y, i = x * 1, torch.tensor(0)
        while i < 3:
            y = checkpoint(self.inner, y, use_reentrant=self.reentrant)
            i = i + 1
        return y


def _set(name: str, value: Any) -> Callable[[Any], None]:
    return lambda model: setattr(model, name, value() if callable(value) else value)


def _write(get: Callable[[Any], torch.Tensor]) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        with torch.no_grad():
            get(model).add_(1)

    return change


PLACES: dict[str, tuple[Region, Callable[[Any], Any]]] = {
    "nothing": (lambda m, x: curved(m.linear(x * m.scale)), lambda m: None),
    "attribute": (lambda m, x: curved(x * m.scale), _set("scale", 5.0)),
    "global": (lambda m, x: curved(x * RATE), lambda m: globals().__setitem__("RATE", 5.0)),
    "item": (lambda m, x: curved(x * m.table["k"]), lambda m: m.table.update(k=5.0)),
    "training": (lambda m, x: curved(x) * (2 if m.training else 3), lambda m: m.eval()),
    "buffer": (lambda m, x: curved(x * m.buffer), _set("buffer", lambda: torch.tensor(5.0))),
    "written buffer": (lambda m, x: curved(x * m.buffer), _write(lambda m: m.buffer)),
    "buffer's data": (lambda m, x: curved(x * m.buffer), lambda m: m.buffer.data.fill_(5.0)),
    "weight": (lambda m, x: curved(x * m.weight), _set("weight", lambda: nn.Parameter(torch.full((3,), 5.0)))),
    "written weight": (lambda m, x: curved(x * m.weight), _write(lambda m: m.weight)),
    "weight's data": (lambda m, x: curved(x * m.weight), lambda m: m.weight.data.add_(1)),
    "data": (lambda m, x: curved(x * m.weight), lambda m: setattr(m.weight, "data", m.weight.data + 1)),
    "weight of a layer": (lambda m, x: curved(m.linear(x)), lambda m: setattr(
        m.linear, "weight", nn.Parameter(m.linear.weight.detach() + 1))),
    "written weight of a layer": (lambda m, x: curved(m.linear(x)), _write(lambda m: m.linear.weight)),
    "written bias": (lambda m, x: curved(m.linear(x)), _write(lambda m: m.linear.bias)),
    "bias's data": (lambda m, x: curved(m.linear(x)), lambda m: m.linear.bias.data.add_(1)),
    "layer": (lambda m, x: curved(m.linear(x)), _set("linear", lambda: nn.Linear(3, 3))),
    "hook": (lambda m, x: curved(m.linear(x)), lambda m: m.linear.register_forward_hook(lambda m, x, y: y * 2)),
}  # fmt: skip


def _gradients(model: Any, change: Callable[[Any], Any], sign: float, times: int) -> list[torch.Tensor | None]:
    globals()["RATE"] = 2.0
    leaves = [torch.tensor([0.1, 0.2, 0.3]).mul(sign).requires_grad_(), *model.parameters()]
    loss = model(leaves[0]).sum()
    change(model)
    for number in range(times):
        loss.backward(retain_graph=number + 1 < times)
    return [leaf.grad for leaf in leaves]


@pytest.mark.sample(12)
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("how", ["straight", "branch", "loop", "nested"])
@pytest.mark.parametrize("place", PLACES)
def test_it_changes_before_backward(place: str, how: str, reentrant: bool, backend: str) -> None:
    region, change = PLACES[place]
    for sign, times in ((1.0, 1), (-1.0, 2)):
        expected = _gradients(Model(region, how, reentrant), change, sign, times)
        static = dy2static.to_static(Model(region, how, reentrant), backend=backend)
        try:
            found = _gradients(static, change, sign, times)
        except (TraceError, RuntimeError) as error:
            assert place != "nothing"
            assert "D2S275" in str(error) or "modified by an inplace operation" in str(error)
        else:
            assert len(found) == len(expected)
            for one, other in zip(found, expected):
                assert one is other is None or torch.allclose(one, other)  # type: ignore[arg-type]


def test_the_error_says_what_has_changed() -> None:
    static = dy2static.to_static(Model(lambda m, x: curved(x * m.scale), "straight", False))
    loss = static(torch.ones(3, requires_grad=True)).sum()
    static.scale = 5.0
    with pytest.raises(TraceError, match="attribute 'scale' of Model, .* was 2.0, and is 5.0") as caught:
        loss.backward(retain_graph=True)
    assert caught.value.code == "D2S275"
    assert "curved(x * m.scale)" in str(caught.value)
    static.scale = 2.0  # as it was
    loss.backward()


class Holder:
    rate: float
    last: Any
    text: str

    def reset(self) -> None:
        self.rate, self.last, self.text = 2.0, None, ""


HELD = Holder()
HELD.reset()
TABLE: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    HELD.reset()
    TABLE.clear()
    globals()["RATE"] = 2.0


def given(x: torch.Tensor) -> Any:
    return checkpoint(lambda t: curved(t * HELD.rate), x, use_reentrant=False)


def stored_before(x: torch.Tensor) -> Any:
    HELD.rate = 3.0
    return given(x)


def stored_beside(x: torch.Tensor) -> Any:
    rate, kept = 2.0, []
    y = checkpoint(lambda t: curved(t * rate), x, use_reentrant=False)
    kept.append(y)
    HELD.last = 1
    return kept[0]


def stored_inside(x: torch.Tensor) -> Any:
    def part(t: torch.Tensor) -> torch.Tensor:
        TABLE["last"] = HELD.last = curved(t)
        return HELD.last * 2  # type: ignore[no-any-return]

    y = checkpoint(part, x, use_reentrant=False) + HELD.last
    HELD.text = "done"
    return y


def several(x: torch.Tensor) -> Any:
    a, b = checkpoint(lambda t: (curved(t * HELD.rate), [t * 3, t[1:]]), x, use_reentrant=False)
    return a, b[0], b[1]


def a_view(x: torch.Tensor) -> Any:
    return checkpoint(lambda t: curved(t * HELD.rate)[1:], x, use_reentrant=False)


def written_after(x: torch.Tensor) -> Any:
    y = checkpoint(lambda t: curved(t * HELD.rate) * 2, x, use_reentrant=False)
    y += 1
    y[0] = 0
    return y


def branching(x: torch.Tensor) -> Any:
    return checkpoint(lambda t: curved(t * HELD.rate) if t.sum() > 0 else t * HELD.rate, x, use_reentrant=False)


def asked_inside(x: torch.Tensor) -> Any:
    return torch.autograd.grad(given(x).sum(), x)[0]


def retained(x: torch.Tensor) -> Any:
    y = given(x)
    y.retain_grad()
    (y * 2).sum().backward()
    return y.grad


def told(x: torch.Tensor) -> Any:
    y = given(x)
    HELD.text = str(y)
    return y


def _all(function: Any, x: torch.Tensor, create: bool) -> list[Any]:
    HELD.reset()
    leaf = x.clone().requires_grad_()
    results = function(leaf)
    results = results if isinstance(results, tuple) else (results,)
    found: list[Any] = [HELD.text, *results]
    asked = [one.sum() for one in results if one.requires_grad]
    if asked:
        found += torch.autograd.grad(asked, leaf, create_graph=create)
    if create and asked and found[-1].requires_grad:
        found += torch.autograd.grad(found[-1].sum(), leaf)
    return found


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("function", [
    given, stored_before, stored_beside, stored_inside, several, a_view, written_after, branching, asked_inside,
    retained, told], ids=lambda one: one.__name__)  # fmt: skip
def test_nothing_changes(function: Callable[[torch.Tensor], Any]) -> None:
    static = dy2static.to_static(function)
    for x in (torch.tensor([0.1, 0.2, 0.3]), -torch.tensor([0.1, 0.2, 0.3])):
        for create in (False, True):
            expected, found = _all(function, x, create), _all(static, x, create)
            assert expected[0] == found[0] and len(expected) == len(found)
            assert all(map(torch.allclose, found[1:], expected[1:]))


def stored_after(x: torch.Tensor) -> Any:
    y = given(x)
    HELD.rate = 3.0
    return y


def made_inside(x: torch.Tensor) -> Any:
    holder = Holder()
    holder.reset()
    y = checkpoint(lambda t: curved(t * holder.rate), x, use_reentrant=False)
    holder.rate = 3.0
    return y


def bound_inside(x: torch.Tensor) -> Any:
    rate = 2.0
    y = checkpoint(lambda t: curved(t * rate), x, use_reentrant=False)
    rate = 3.0
    return y


def memory(x: torch.Tensor) -> Any:
    w = torch.full((3,), 2.0)
    y = checkpoint(lambda t: curved(t * w), x, use_reentrant=False)
    w.add_(1)
    return y


def data(x: torch.Tensor) -> Any:
    h = x * 2
    y = checkpoint(curved, h, use_reentrant=False)
    h.data.add_(1)
    return y


def unrolled(x: torch.Tensor) -> Any:
    for rate in range(3):
        HELD.rate = float(rate)
        x = given(x) + x
    return x


def in_a_loop(x: torch.Tensor) -> Any:
    i = torch.tensor(0)
    while i < 3:
        HELD.rate = HELD.rate + 1.0
        x, i = given(x) + x, i + 1
    return x


@pytest.mark.parametrize("function", [stored_after, made_inside, bound_inside, memory, data, unrolled, in_a_loop],
                         ids=lambda one: one.__name__)
def test_the_function_itself_changes_it(function: Callable[[torch.Tensor], Any]) -> None:
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    y = dy2static.to_static(function)(x)
    HELD.reset()
    assert torch.allclose(y, function(x))
    with pytest.raises(TraceError, match="D2S275"):
        y.sum().backward()


def stored_before_asked_inside(x: torch.Tensor) -> Any:
    y = given(x)
    HELD.rate = 3.0
    return torch.autograd.grad(y.sum(), x)[0]


def test_the_function_changes_it_before_it_asks_for_a_gradient() -> None:
    with pytest.raises(TraceError, match="D2S213"):
        dy2static.to_static(stored_before_asked_inside)(torch.ones(3, requires_grad=True))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.cache = nn.Linear(3, 3), None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cache is None:
            self.cache = torch.arange(3.0)
        return curved(self.linear(x) + self.cache)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x


def test_caches_that_a_first_call_makes() -> None:
    """Each layer stores something after the one before it is done, and a second call of it gives the same."""
    eager, static = Layers(), dy2static.to_static(Layers())
    for _ in range(20):  # the last ones by C
        grads = []
        for model in (eager, static):
            x = torch.ones(3, requires_grad=True)
            model(x).sum().backward()
            grads.append(x.grad)
        assert torch.allclose(*grads)  # type: ignore[arg-type]


def test_a_file_has_no_python_to_ask(tmp_path: Path) -> None:
    model = Model(lambda m, x: curved(m.linear(x) * m.scale), "nested", False)
    dy2static.save(model, tmp_path / "model", [dy2static.InputSpec([3], "float32", "x")])
    loaded = dy2static.load(tmp_path / "model")
    x = torch.ones(3, requires_grad=True)
    (expected,) = torch.autograd.grad(model(x).sum(), [x])
    y = loaded(x)
    model.scale = 5.0
    assert torch.allclose(torch.autograd.grad(y.sum(), [x])[0], expected)
    assert "custom_grad" not in str(loaded.program())
