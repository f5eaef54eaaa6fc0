"""A gradient by an ``autograd.Function`` of the user's can be differentiated again, as in eager, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import grad
from torch.autograd.function import once_differentiable

import dy2static
from dy2static import InputSpec, to_static


class Square(torch.autograd.Function):
    """Saves its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Exp(torch.autograd.Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


class Twice(torch.autograd.Function):
    """Its backward applies another."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return 2 * x.sin()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * Cosine.apply(ctx.saved_tensors[0])


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.cos()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -g * ctx.saved_tensors[0].sin()


class Constant(torch.autograd.Function):
    """Saves neither its argument nor its result: what it saves is a constant of the gradient, in eager as well."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x * 3)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


class Product(torch.autograd.Function):
    """Two arguments, one of them written with ``setup_context``."""

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "square": lambda x: Square.apply(x) * x,
    "exp": lambda x: Exp.apply(x * 0.5) * x,
    "twice": lambda x: Twice.apply(x) * x,
    "constant": lambda x: Constant.apply(x) * x,
    "product": lambda x: Product.apply(x, x.sin()),
    "nested": lambda x: Square.apply(Exp.apply(x)),
}


def branch(x: Any) -> Any:
    return Square.apply(x) if x.sum() > 0 else Exp.apply(x) * x


def loop(x: Any) -> Any:
    count = 0
    while count < 3 and x.abs().sum() < 100:
        x = Square.apply(x) * 0.5
        count += 1
    return x


PROGRAMS |= {"branch": branch, "loop": loop}


def derivatives(f: Callable[[Any], Any], start: list[float]) -> list[Any]:
    """The value and its derivatives by the sum, up to the third or one that has none."""
    x = torch.tensor(start, requires_grad=True)
    found = [f(x)]
    while len(found) < 4 and found[-1].requires_grad:
        (one,) = grad(found[-1].sum(), x, create_graph=True, allow_unused=True, materialize_grads=True)
        found.append(one)
    return [one.detach() for one in found]


STARTS = [[1.5, -0.4], [-2.0, 0.7]]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("autograd", [None, "eager"])
def test_by_who_calls(name: str, autograd: str | None) -> None:
    f = PROGRAMS[name]
    static = to_static(f, **({} if autograd is None else {"autograd": autograd}))
    for start in STARTS * 2:
        for mine, eagers in zip(derivatives(static, start), derivatives(f, start), strict=True):
            torch.testing.assert_close(mine, eagers)


@pytest.mark.parametrize("name", PROGRAMS)
def test_loaded(name: str, tmp_path: Any) -> None:
    loaded = dy2static.load(dy2static.save(to_static(PROGRAMS[name]), tmp_path / "f", input_spec=[InputSpec([2])]))
    for start in STARTS:
        for mine, eagers in zip(derivatives(loaded, start), derivatives(PROGRAMS[name], start), strict=True):
            torch.testing.assert_close(mine, eagers)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "loop"])
def test_inside(name: str) -> None:
    f = PROGRAMS[name]

    def second(x: Any) -> Any:
        (one,) = grad(f(x).sum(), x, create_graph=True)
        (two,) = grad((one * x).sum(), x)
        return one.detach(), two, two.requires_grad

    def penalty(x: Any) -> Any:
        (one,) = grad(f(x).sum(), x, create_graph=True)
        return one.square().sum()

    static, static_penalty = to_static(second), to_static(penalty)
    for start in STARTS * 2:
        x = torch.tensor(start, requires_grad=True)
        for mine, eagers in zip(static(x), second(x), strict=True):
            torch.testing.assert_close(mine, eagers)
        torch.testing.assert_close(grad(static_penalty(x), x), grad(penalty(x), x))


class Once(Square):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * g


class Off(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        with torch.no_grad():
            return 2 * ctx.saved_tensors[0] * g


@pytest.mark.parametrize("function", [Once, Off])
def test_a_backward_without_gradients_is_differentiated_once(function: Any) -> None:
    """What eager says of ``once_differentiable`` is said of every backward that turns gradients off."""
    static = to_static(lambda x: function.apply(x) * x)
    x = torch.tensor([1.5, 2.0], requires_grad=True)
    (one,) = grad(static(x).sum(), x, create_graph=True)
    torch.testing.assert_close(one.detach(), 3 * x.detach() ** 2)
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        grad(one.sum(), x)
    (plain,) = grad(static(x).sum(), x)
    assert not plain.requires_grad
