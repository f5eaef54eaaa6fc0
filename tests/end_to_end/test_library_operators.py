"""Operators of ``torch.library``: with and without a formula, for every key that a kernel can be registered for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.library import Library, custom_op, register_fake

import dy2static
from runtime.autodiff import gradient_path
from tests.oracle import check, same

LIBRARY = Library("test_library_operators", "DEF")  # noqa: TOR901  # kept for the whole run
OPS = torch.ops.test_library_operators

ONE = "(Tensor x) -> Tensor"
WRITES = "(Tensor(a!) x) -> Tensor(a!)"


Kernel = Callable[..., Any]


def define(name: str, schema: str, key: str, kernel: Kernel, fake: Kernel | None = None) -> None:
    LIBRARY.define(name + schema)
    LIBRARY.impl(name, kernel, key)
    if fake is not None:
        register_fake(f"test_library_operators::{name}", fake, lib=LIBRARY)


def inside(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * x


define("implicit", ONE, "CompositeImplicitAutograd", inside)
define("explicit", ONE, "CompositeExplicitAutograd", inside, torch.empty_like)
define("kernel", ONE, "CPU", inside, torch.empty_like)
define("foreign", ONE, "CPU", lambda x: torch.from_numpy(np.sin(x.detach().numpy())), torch.empty_like)
define("own_autograd", ONE, "CPU", torch.sin, torch.empty_like)
LIBRARY.impl("own_autograd", lambda x: torch.cos(x) * x, "Autograd")
define("view", "(Tensor(a) x) -> Tensor(a)", "CompositeExplicitAutograd", lambda x: x.t())
define("implicit_view", "(Tensor(a) x) -> Tensor(a)", "CompositeImplicitAutograd", lambda x: x.t())
define("without_first", "(Tensor(a) x) -> Tensor(a)", "CompositeExplicitAutograd", lambda x: x[1:])
define("apart", "(Tensor(a) x) -> (Tensor(a), Tensor)", "CompositeExplicitAutograd", lambda x: (x[1:], x[:1].clone()))
define("two", "(Tensor x) -> (Tensor, Tensor)", "CompositeImplicitAutograd", lambda x: (x * 2, x + 1))
define("by_size", ONE, "CompositeImplicitAutograd", lambda x: x.sin() if x.shape[0] > 2 else x.cos())
define("product", ONE, "CompositeExplicitAutograd", lambda x: x @ x, lambda x: x.new_empty(x.shape))
define("implicit_writes", WRITES, "CompositeImplicitAutograd", lambda x: x.mul_(2))
define("writes", WRITES, "CPU", lambda x: x.mul_(2), lambda x: x)


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


SCALE = torch.nn.Hardtanh(-2.0, 2.0)
define("python", ONE, "CompositeImplicitAutograd", lambda x: SCALE(Rounded.apply(x / 2)) * x)
define("python_kernel", ONE, "CPU", lambda x: SCALE(Rounded.apply(x / 2)) * x, torch.empty_like)


@custom_op("test_library_operators::plain", mutates_args=())
def plain(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


@custom_op("test_library_operators::with_formula", mutates_args=())
def with_formula(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


@custom_op("test_library_operators::doubles", mutates_args=("x",))
def doubles(x: torch.Tensor) -> None:
    x.mul_(2)


@custom_op("test_library_operators::adds", mutates_args=("x",))
def adds(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return y * 2


@custom_op("test_library_operators::by_numbers", mutates_args=())
def by_numbers(x: torch.Tensor, factor: float, flag: bool = True, count: int = 1) -> torch.Tensor:
    return x * factor + count if flag else x - count


by_numbers.register_fake(lambda x, factor, flag=True, count=1: torch.empty_like(x))
plain.register_fake(torch.empty_like)
with_formula.register_fake(torch.empty_like)
adds.register_fake(lambda x, y: torch.empty_like(y))
with_formula.register_autograd(
    lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)

READING = ["implicit", "explicit", "kernel", "foreign", "own_autograd", "view", "implicit_view", "two", "by_size",
           "plain", "with_formula"]  # fmt: skip
WRITING = ["implicit_writes", "writes", "doubles"]


def alone(op: Any) -> Callable[..., Any]:
    return lambda x: op(x)


def in_a_branch(op: Any) -> Callable[..., Any]:
    def function(x: torch.Tensor) -> Any:
        y = x * 1
        if x.sum() > 0:
            return op(y)
        return op(y * 2)

    return function


def in_a_loop(op: Any) -> Callable[..., Any]:
    def function(x: torch.Tensor) -> Any:
        y = x * 1
        for _ in range(int((x * 0).sum()) + 2):
            op(y)
            y = y + 1
        return op(y)

    return function


def writes_its_argument(op: Any) -> Callable[..., Any]:
    def function(x: torch.Tensor) -> Any:
        op(x)
        return x * x

    return function


def writes_a_row(op: Any) -> Callable[..., Any]:
    def function(x: torch.Tensor) -> Any:
        y = x * 1
        op(y[0])
        return y

    return function


def outcome(function: Callable[..., Any], x: torch.Tensor) -> list[Any]:
    """All that can be seen of a call and its backward: errors too, each where it is raised."""
    x = x.detach().clone().requires_grad_(x.requires_grad)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = function(x)
    except Exception as error:
        return ["raised", type(error), str(error).split("\n")[0]]
    results = list(result) if isinstance(result, tuple) else [result]
    seen = [[one.detach().clone() for one in results], [one.requires_grad for one in results], x.detach().clone()]
    needed = [one.sum() for one in results if one.requires_grad]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [*seen, torch.autograd.grad(sum(needed), x, allow_unused=True) if needed else None]
    except Exception as error:
        return [*seen, type(error), str(error).split("\n")[0]]


def cases() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in READING:
        for make in (alone, in_a_branch, in_a_loop):
            if name != "two" or make is not in_a_loop:
                yield f"{name} {make.__name__}", make(getattr(OPS, name))
    for name in WRITING:
        for make in (writes_its_argument, writes_a_row, in_a_loop) if name != "doubles" else (
            writes_its_argument, writes_a_row
        ):  # fmt: skip
            yield f"{name} {make.__name__}", make(getattr(OPS, name))


@pytest.mark.parametrize("path", ["program", "autograd"])
@pytest.mark.parametrize("needs", [False, True], ids=["plain", "gradient"])
def test_the_family(needs: bool, path: str) -> None:
    """Results, ``requires_grad``, gradients, what is written and what is raised, in forward or in backward."""
    count = 0
    for name, function in cases():
        for x in (torch.linspace(-1, 2, 9).reshape(3, 3), torch.linspace(-2, 1, 9).reshape(3, 3)):
            x.requires_grad_(needs)
            with gradient_path(path):
                got = outcome(dy2static.to_static(function), x)
            same(got, outcome(function, x), name)
            count += 1
    print(f"{count} calls")
    assert count > 70


def test_an_error_of_a_missing_formula_is_raised_in_backward() -> None:
    static = dy2static.to_static(lambda x: plain(x))
    result = static(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula"):
        result.sum().backward()


def test_several_written_arguments_and_a_result() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x * 3
        if x.sum() > 0:
            z = adds(y, x.detach())
        else:
            z = adds(y[0], x[1].detach()) * 2
        return y, z.detach().sum()

    for sign in (1, -1):
        check(function, [torch.full((2, 2), float(sign))])
        check(function, [torch.full((2, 2), float(sign), requires_grad=True)])


def test_a_leaf_is_written_and_stays_one() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        for _ in range(int((x * 0).sum()) + 2):
            if x.sum() > 0:
                doubles(x)
        return x * x

    for value in (1.0, -1.0):
        x = torch.full((2,), value, requires_grad=True)
        y = torch.full((2,), value, requires_grad=True)
        same(dy2static.to_static(function)(x), function(y))
        assert x.is_leaf and x._version > 0 or value < 0
        same(x, y)


@pytest.mark.parametrize("needs", [False, True], ids=["plain", "gradient"])
def test_autocast_reaches_inside_a_kernel(needs: bool) -> None:
    """Also where no gradient goes through the operator, in a Program that has gradients elsewhere."""

    def function(x: torch.Tensor, w: torch.Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            product = OPS.product(x).float()
        return product * w.sin(), implicit(x)

    implicit = OPS.implicit
    check(function, [torch.rand(3, 3), torch.rand(3, 3, requires_grad=needs)])
    with torch.autocast("cpu", torch.bfloat16):
        check(lambda x, w: OPS.product(x).float() * w.sin(), [torch.rand(3, 3), torch.rand(3, 3, requires_grad=needs)])


@pytest.mark.parametrize("name", ["implicit", "explicit", "kernel", "plain", "with_formula"])
def test_loaded(name: str, tmp_path: Path) -> None:
    function = in_a_branch(getattr(OPS, name))
    path = dy2static.save(function, tmp_path / "f", input_spec=[dy2static.InputSpec([3, 3], torch.float32)])
    loaded = dy2static.load(path, allow=["test_library_operators"])
    for x in (torch.ones(3, 3), torch.ones(3, 3, requires_grad=True), -torch.ones(3, 3, requires_grad=True)):
        same(outcome(loaded, x), outcome(function, x))


@pytest.mark.parametrize("name", ["python", "python_kernel"])
@pytest.mark.parametrize("grad", [True, False])
def test_kernels_that_apply_functions_and_modules(name: str, grad: bool) -> None:
    """What a kernel written in Python calls is not the user's program: none of it is staged."""

    def program(x: Any) -> Any:
        with torch.set_grad_enabled(grad):
            y = getattr(OPS, name)(x)
        return y * 2 if y.sum() > 0 else y - 1

    values = ([3.2, -1.0], [0.1, 0.2], [-5.0, 1.0])
    check(program, *((torch.tensor(one, requires_grad=name == "python"),) for one in values))


def test_results_are_views_for_each_size() -> None:
    """Torch cannot tell what such a kernel gives for a size that is not known: each size has a Program."""

    def written_before(x: torch.Tensor) -> Any:
        y = x.clone()
        view = OPS.without_first(y)
        y.mul_(2)
        return view

    def written_after(x: torch.Tensor) -> Any:
        y = x.clone()
        view, first = OPS.apart(y)
        if x.sum() > 4:
            view.mul_(2)
        return y, view, first

    for function in (written_before, written_after):
        check(function, *([torch.ones(size)] for size in (3, 5, 7)))


def test_an_operator_is_called_as_an_object_with_numbers_of_the_run() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x.detach()
        total = x.detach().sum()
        first = by_numbers(y, total.item())
        second = by_numbers(y, 2.0, flag=bool(total > 0), count=int(total))
        return first, second

    check(function, *([torch.ones(3) * sign] for sign in (1, -2)))
