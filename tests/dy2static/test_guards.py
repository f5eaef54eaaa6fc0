"""What a Program depended on changes: the next call is right. Numbers that change at every call make no Programs."""

from __future__ import annotations

import copy
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import RetraceWarning, to_static
from dy2static.program_cache import WARN_BEYOND
from tests.oracle import same

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5))
        self.head = nn.Linear(4, 2)
        self.threshold = 0.5
        self.config = {"scale": 2.0, "layers": [1, 2]}

    def forward(self, x):
        h = self.encoder(x)
        if h.sum() > self.threshold:
            h = h * self.config["scale"]
        for n in self.config["layers"]:
            h = h + n
        return self.post(self.head(h))

    def post(self, x):
        return x


def double(self, x):
    return x * 2


def swap(model):
    torch.manual_seed(7)
    model.head = nn.Linear(4, 5)


def hook(module, args, result):
    return result + 1


CHANGES: dict[str, Callable[[Any], object]] = {
    "a sublayer is replaced": swap,
    "an activation takes its place": lambda model: setattr(model, "encoder", nn.Sequential(nn.Linear(3, 4), nn.ReLU())),
    "a layer is appended": lambda model: model.encoder.append(nn.Tanh()),
    "a parameter is frozen": lambda model: model.head.weight.requires_grad_(False),
    "a parameter is replaced": lambda model: setattr(model.head, "bias", nn.Parameter(torch.ones(2))),
    "a parameter is removed": lambda model: setattr(model.head, "bias", None),
    "a parameter's data is changed": lambda model: model.head.weight.data.mul_(3),
    "an attribute": lambda model: setattr(model, "threshold", -100.0),
    "an attribute of another type": lambda model: setattr(model, "threshold", torch.tensor(1e9)),
    "a monkeypatched method of the object": lambda model: setattr(model, "post", types.MethodType(double, model)),
    "a monkeypatched method of the class": lambda model: setattr(type(model), "post", double),
    "a forward hook": lambda model: model.head.register_forward_hook(hook),
    "a hook on a container": lambda model: model.encoder.register_forward_pre_hook(lambda m, args: (args[0] * 2,)),
    "a submodule in eval mode": lambda model: model.encoder.eval(),
    "the rate of a dropout": lambda model: setattr(model.encoder[1], "p", 0.9),
    "an entry of a config": lambda model: model.config.update(scale=-3.0),
    "an entry inside a list of a config": lambda model: model.config["layers"].append(5),
    "a config replaced": lambda model: setattr(model, "config", {"scale": 1.0, "layers": []}),
    "another dtype": lambda model: model.double(),
    "a weight normalised": lambda model: nn.utils.parametrizations.weight_norm(model.head),
}


def run(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, list[Any]]:
    x = x.to(next(model.parameters()).dtype).clone().requires_grad_()
    model.zero_grad(set_to_none=True)
    torch.manual_seed(3)
    result = model(x)
    result.sum().backward()
    assert x.grad is not None
    return result, x.grad, [parameter.grad for parameter in model.parameters()]


def hold(model: nn.Module, twin: nn.Module) -> None:
    for x in (X, -X):
        same(run(model, x), run(twin, x))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_call_after_a_change_is_right(change: Callable[[Any], object]) -> None:
    class Mine(Model):
        pass

    class Eager(Model):
        pass

    model, twin = Mine(), Eager()
    twin.load_state_dict(model.state_dict())
    to_static(model)
    hold(model, twin)
    for one in (model, twin):
        torch.manual_seed(5)
        change(one)
    hold(model, twin)


SCALE = 2.0


def test_globals_cells_and_defaults() -> None:
    global SCALE

    def make():
        offset = 1.0

        def f(x, factor=1.0):
            return x * SCALE * factor + offset

        def move(value):
            nonlocal offset
            offset = value

        return f, move

    f, move = make()
    static = to_static(f)
    changes = [
        lambda: globals().update(SCALE=3.0), lambda: globals().update(SCALE=3), lambda: move(5.0),
        lambda: move(torch.ones(3)), lambda: setattr(f, "__defaults__", (4.0,)), lambda: globals().update(SCALE=2.0),
    ]  # fmt: skip
    for change in changes:
        torch.testing.assert_close(static(X), f(X), rtol=0, atol=0)
        change()
        torch.testing.assert_close(static(X), f(X), rtol=0, atol=0)


# -- numbers that change at every call


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.rate = 1.0
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        self.calls += 1
        if x.sum() > 0:
            self.calls += 2
        self.rate = self.rate * 0.5
        x = self.linear(x) * self.rate
        if self.calls > 10:
            x = x + 1
        return x, self.calls


def test_a_counter_becomes_an_input() -> None:
    model = Counting()
    twin = copy.deepcopy(model)
    to_static(model)
    for number in range(12):
        x, y = (torch.full((2, 3), float(number % 3 - 1), requires_grad=True) for _ in range(2))
        mine, eager = model(x), twin(y)
        assert torch.equal(mine[0], eager[0]) and mine[1] == eager[1] and type(mine[1]) is int
        assert (model.calls, model.rate) == (twin.calls, twin.rate)
        assert type(model.calls) is int and type(model.rate) is float
        mine[0].sum().backward()
        eager[0].sum().backward()
        assert torch.equal(x.grad, y.grad)
    assert len(model.forward.programs) == 3


CALLS = 0


def test_globals_and_cells_become_inputs() -> None:
    def make():
        step = 0

        def f(x):
            nonlocal step
            global CALLS
            CALLS += 1
            step = step + 2
            for _ in range(CALLS):
                x = x + step
            return x, step

        return f

    for function in (make(), to_static(make())):
        globals().update(CALLS=0)
        found = [function(torch.zeros(2)) for _ in range(8)]
        expected = [float(2 * n * n) for n in range(1, 9)]
        assert [x[0].item() for x, _ in found] == expected
        assert [step for _, step in found] == [2 * n for n in range(1, 9)] and CALLS == 8
    assert len(function.programs) == 3


def test_a_number_first_read_in_a_branch() -> None:
    space = types.SimpleNamespace(n=0)

    def f(x):
        for _ in range(100):
            x = x + 1
        if x.sum() > 0:
            x = x + space.n
        else:
            x = x - space.n
        return x

    static = to_static(f)
    for n in (0, 1, 2, 3, -7, 2**62):
        space.n = n
        for x in (torch.zeros(2), torch.full((2,), -1e6)):
            assert torch.equal(static(x), f(x))
    assert len(static.programs) == 3
    with pytest.warns(RetraceWarning, match=r"attribute 'n' of SimpleNamespace has changed \(it was True, and is 1\)"):
        for value in (2.5, True, None, "s"):  # of another type: not the number it was
            space.n = value if isinstance(value, (bool, int, float)) else 1
            assert torch.equal(static(X), f(X))


def test_a_number_that_must_be_known_stays_fixed() -> None:
    space = types.SimpleNamespace(n=0)

    def f(x):
        return x * space.n, {space.n: "entry", ...: 0}

    static = to_static(f)
    with pytest.warns(RetraceWarning, match="attribute 'n' of SimpleNamespace"):
        for n in range(6):
            space.n = n
            mine, eager = static(X), f(X)
            assert torch.equal(mine[0], eager[0]) and mine[1] == eager[1]
    assert len(static.programs) == 6


def test_too_many_traces_are_told_with_their_cause() -> None:
    space = types.SimpleNamespace(mode="")

    def f(x):
        return x * len(space.mode)

    static = to_static(f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(WARN_BEYOND + 3):
            space.mode = "m" * n
            static(X)
    assert [one.category for one in caught] == [RetraceWarning] * 2
    for one, times in zip(caught, ("3 times again", f"{WARN_BEYOND + 1} times")):
        assert f"f() has been traced {times}" in str(one.message)
        assert "attribute 'mode' of SimpleNamespace has changed" in str(one.message)
        assert one.filename == __file__
