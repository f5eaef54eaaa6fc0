"""What a ``torch.autograd.Function`` keeps for backward and is written since: saved, eager raises; held on ``ctx``,
backward reads what it holds by then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd import Function, grad

from dy2static import to_static
from tests.oracle import check, check_saved


class Saves(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


class SavesResult(Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class SavesWeight(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


class Unread(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Holds(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.x


class HoldsInside(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.parts = {"x": [x, x * 2], "n": 3}
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.parts["x"][0] * ctx.parts["n"]


class Both(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k * ctx.saved_tensors[0], None


class WritesInside(Function):
    @staticmethod
    def forward(ctx, x):
        t = x.clone()
        t.mul_(2)
        ctx.save_for_backward(t)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@torch.library.custom_op("kept_for_backward::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


@cube.register_fake
def _(x):
    return torch.empty_like(x)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _derivative(ctx, g):
    return g * 3 * ctx.saved_tensors[0] ** 2


cube.register_autograd(_derivative, setup_context=_keep)


def written(function, x):
    y = x * 1
    z = function(y)
    y.mul_(10)
    return z


def written_and_given_back(function, x):
    y = x * 1
    z = function(y)
    y.mul_(10)
    y.add_(1)
    return z, y


def without_gradients(function, x):
    y = x * 1
    z = function(y)
    with torch.no_grad():
        y.mul_(10)
    return z


def through_data(function, x):
    y = x * 1
    z = function(y)
    y.data.mul_(10)
    return z


def a_row(function, x):
    y = x * 1
    z = function(y)
    y[0] = 5
    return z


def on_a_path(function, x):
    y = x * 1
    z = function(y)
    if x.sum() > 0:
        y.mul_(10)
    return z


def all_on_a_path(function, x):
    z = x * 1
    if x.sum() > 0:
        y = x * 1
        z = function(y)
        y.mul_(10)
    return z


def in_a_later_loop(function, x):
    y = x * 1
    z = function(y)
    while y.abs().sum() < 100:
        y.mul_(2)
    return z


def in_each_iteration(function, x):
    y = x * 1
    t = x * 0
    while t.abs().sum() < 50:
        t = t + function(y)
        y.mul_(1.5)
    return t


def before(function, x):
    y = x * 1
    y.mul_(2)
    return function(y)


def another_value(function, x):
    y = x * 1
    z = function(y)
    y = y * 10
    return z + y


def after_the_gradient(function, x):
    y = x * 1
    (g,) = grad(function(y).sum(), x)
    y.mul_(10)
    return g


def of_no_consequence(function, x):
    y = x * 1
    z = function(y)
    y.mul_(10)
    return z.detach() + x * 2


FUNCTIONS = {
    "saved": Saves.apply, "held": Holds.apply, "held-inside": HoldsInside.apply, "unread": Unread.apply,
    "inside": WritesInside.apply, "operator": cube,
}  # fmt: skip
WRITES = [
    written, written_and_given_back, without_gradients, through_data, a_row, on_a_path, all_on_a_path,
    in_a_later_loop, in_each_iteration, before, another_value, after_the_gradient, of_no_consequence,
]  # fmt: skip


def _calls() -> list[list[Any]]:
    return [[torch.tensor(values, requires_grad=True)] for values in ([0.5, 1.0, 1.5], [-1.0, -2.0, -3.0])]


@pytest.mark.parametrize("write", WRITES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument(name: str, write: Any) -> None:
    function = FUNCTIONS[name]

    def program(x):
        return write(function, x)

    check(program, *_calls())


@pytest.mark.parametrize("write", [written, on_a_path, in_a_later_loop], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", ["saved", "held"])
def test_a_file_and_torchs_autograd(name: str, write: Any, tmp_path: Path) -> None:
    function = FUNCTIONS[name]

    def program(x):
        return write(function, x)

    check_saved(program, check(program, *_calls()), tmp_path / "f.d2s", *_calls())
    check(program, *_calls(), static=to_static(program, autograd="eager"))


def a_result(x):
    y = SavesResult.apply(x)
    y.add_(1)
    return y


def a_result_on_a_path(x):
    y = SavesResult.apply(x)
    z = y * 2
    if x.sum() > 0:
        y.add_(1)
    return z


def a_weight(x):
    w = torch.ones(3) * 3
    z = SavesWeight.apply(x, w)
    w.add_(1)
    return z


def the_held_of_two(x):
    y, k = x * 1, torch.ones(3)
    z = Both.apply(y, k)
    k.mul_(5)
    return z


def the_saved_of_two(x):
    y, k = x * 1, torch.ones(3)
    z = Both.apply(y, k)
    y.mul_(5)
    return z


def another_part(x):
    y = x * 1
    z = Saves.apply(y[:2])
    y[2] = 5
    return z


def held_and_asked_for_inside(x):
    y = x * 1
    z = Holds.apply(y)
    y.mul_(10)
    return grad(z.sum(), x)


def held_and_asked_for_on_a_path(x):
    y = x * 1
    z = Holds.apply(y)
    g = x * 1
    if x.sum() > 0:
        y.mul_(10)
        (g,) = grad(z.sum(), x)
    return g


OTHERS = [a_result, a_result_on_a_path, a_weight, the_held_of_two, the_saved_of_two, another_part,
          held_and_asked_for_inside, held_and_asked_for_on_a_path]  # fmt: skip


@pytest.mark.parametrize("program", OTHERS, ids=lambda one: one.__name__)
def test_what_else_is_kept(program: Any) -> None:
    check(program, *_calls())


def test_saved_and_asked_for_inside() -> None:
    def program(x):
        y = x * 1
        z = Saves.apply(y)
        y.mul_(10)
        return grad(z.sum(), x)

    for static in (to_static(program), to_static(program, autograd="eager")):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            static(*_calls()[0])


def test_a_part_that_is_held() -> None:
    def program(x):
        y = x * 1
        z = Holds.apply(y[:2])
        y.mul_(10)
        return z.sum()

    for static in (to_static(program), to_static(program, autograd="eager")):
        with pytest.raises(RuntimeError, match="holds as an attribute of ctx was written"):
            static(*_calls()[0]).backward()
