"""Results that are views of arguments and of parameters: what is computed from one has it as its ancestor."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import to_static
from runtime.autodiff import gradient_path
from tests.end_to_end.test_dependent_results import observed, written
from tests.oracle import same


def sliced(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x[1:]
    return h, h * 2


def viewed(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x.view(-1)
    return h, h.sin(), h * 2


def reshaped(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x.reshape(4)
    return (h * h).sum(), h


def chunks(x: torch.Tensor, n: torch.Tensor) -> Any:
    h, k = x.chunk(2)
    return h, h * k


def unbound(x: torch.Tensor, n: torch.Tensor) -> Any:
    h, k = x.unbind()
    return h, k, h * k


def expanded_before_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x.expand(3, 2, 2)
    if n > 1:
        y = h * 2
    else:
        y = h.sin()
    return h, y


def with_an_axis_before_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x[None]
    if n > 1:
        y = h * 2
    else:
        y = h.sin()
    return h, y, y * h


def transposed_before_a_loop(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x.transpose(0, 1)
    row = h[0]
    y = h.exp()
    for _ in range(n.item()):
        y = y * h + row.sum()
    return y, h, row


def view_of_a_view(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x[0]
    return h, h[1:], h * 2, x[1]


def after_a_branch_and_a_result(x: torch.Tensor, n: torch.Tensor) -> Any:
    y = x.sin()
    if n > 1:
        y = y * 2
    z = y * 2
    h = x[1:]
    return y, z, h, h * 3, x


def row_at_a_number(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x[n.item() - 1]
    return h, h * 2


def shaped_by_a_number(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x.view(n.item() * 2, -1)
    return h, h * 2


def shaped_as_another(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x.view_as(x)
    k = torch.sin(x)
    if n > 1:
        k = k * h
    return h, k, k * h


def made_inside_and_shaped_as_another(x: torch.Tensor, n: torch.Tensor) -> Any:
    y = x.sin()
    if n > 1:
        y = y * 2
    h = y.view_as(x)
    return y, h, h * 2


def given_on_a_path(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x[0]
    y = h if n > 1 else h * 2
    return h, y, y * 3


def one_of_two_views(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x[0]
    y = h if n > 1 else x[1]
    return h, y, y * 3, h * 2


def in_a_list(x: torch.Tensor, n: torch.Tensor) -> Any:
    h = x[0]
    parts = []
    for i in range(n.item()):
        parts.append(h * i)
    return h, parts


def two_that_are_alike(x: torch.Tensor, n: torch.Tensor) -> Any:
    h, g = x[:], x[:]
    return h, g, h * 2, g * 3


FAMILY = [
    sliced, viewed, reshaped, chunks, unbound, expanded_before_a_branch, with_an_axis_before_a_branch,
    transposed_before_a_loop, view_of_a_view, after_a_branch_and_a_result, row_at_a_number, shaped_by_a_number,
    shaped_as_another, made_inside_and_shaped_as_another, given_on_a_path, one_of_two_views, in_a_list,
    two_that_are_alike,
]  # fmt: skip
WRITABLE = [function for function in FAMILY if function is not one_of_two_views]
"""What a branch gives may not be written by the caller where it is an argument's memory on some path."""
WAYS = ["program", "autograd", "eager", "loaded"]


def road_of(function: Callable[..., Any], way: str, file: Path) -> Callable[..., Any]:
    if way == "loaded":
        x = torch.zeros(2, 2, dtype=torch.double).requires_grad_()
        dy2static.save(to_static(function), file, input_spec=[x, torch.tensor(2)])
        return dy2static.load(file)
    return to_static(function, autograd="eager" if way == "eager" else "program")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", FAMILY)
def test_what_is_computed_from_a_view_of_an_argument(
    function: Callable[..., Any], way: str, tmp_path: Path
) -> None:
    road = road_of(function, way, tmp_path / "f")
    for steps in (1, 2):
        with gradient_path("autograd" if way == "autograd" else "program"):
            found = observed(road, steps)
        same(found, observed(function, steps), tolerance=1e-5)


@pytest.mark.parametrize("way", ["program", "loaded"])
@pytest.mark.parametrize("function", WRITABLE)
def test_writing_a_result_that_is_a_view_of_an_argument(
    function: Callable[..., Any], way: str, tmp_path: Path
) -> None:
    road = road_of(function, way, tmp_path / "f")
    for steps in (1, 2):
        for which in range(1 if function is in_a_list else len(function(torch.zeros(2, 2), torch.tensor(steps)))):
            for inside in (False, True):
                found = written_of(road, which, steps, inside)
                same(found, written_of(function, which, steps, inside), tolerance=1e-5)


def written_of(function: Callable[..., Any], which: int, steps: int, inside: bool) -> list[Any]:
    """What a write to a result does; ``inside``: of a call whose argument is no leaf, so that the write is allowed."""
    def call(x: torch.Tensor, n: torch.Tensor) -> Any:
        base = x.clone() if inside else x
        return [base, *function(base, n)] if inside else function(base, n)

    return written(call, which + inside, steps)


class Net(nn.Module):
    """Keeps a view of its argument, and gives a row of its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(2, 2).double()
        self.w = nn.Parameter(torch.tensor([[0.5, 2.0], [1.0, 3.0]], dtype=torch.double))

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        self.feat = x.view(-1, 2)
        row = self.w[0]
        y = self.l(self.feat)
        if n > 1:
            y = y * row
        return row, y, (row * x).sum()


@pytest.mark.parametrize("way", ["program", "eager", "loaded"])
def test_views_that_modules_keep_and_rows_of_parameters(way: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net()
    static: Any = copy.deepcopy(net)
    if way == "loaded":
        args = [torch.zeros(2, 2, dtype=torch.double).requires_grad_(), torch.tensor(2)]
        dy2static.save(static, tmp_path / "net", input_spec=args)
        static = dy2static.load(tmp_path / "net")
    else:
        static = to_static(static, autograd=way)

    def seen(module: Any, steps: int) -> list[Any]:
        found = observed(lambda x, n: (*module(x, n), module.feat), steps)
        return [*found, *(one.grad for one in module.parameters())]

    for steps in (1, 2):
        same(seen(static, steps), seen(net, steps), tolerance=1e-5)


@pytest.mark.parametrize("way", ["program", "autograd", "eager"])
def test_gradients_by_such_a_view_alone(way: str) -> None:
    def turned(x: torch.Tensor) -> Any:
        h = x.transpose(0, 1)
        if x.sum() > 0:
            y = (h * h).sum()
        else:
            y = h.sum()
        return y, h

    found = []
    for road in (turned, to_static(turned, autograd="eager" if way == "eager" else "program")):
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
        with gradient_path("autograd" if way == "autograd" else "program"):
            y, h = road(x)
        assert h._is_view() and h._base is x
        found.append([*torch.autograd.grad(y, h, create_graph=True), *torch.autograd.grad(y, [h, x])])
    same(found[1], found[0])


@pytest.mark.parametrize("autograd", ["program", "eager"])
def test_views_without_gradients_are_no_ancestors(autograd: str) -> None:
    def apart(x: torch.Tensor) -> Any:
        with torch.no_grad():
            h = x[0]
        g = x[1].detach()
        return h, g, h * x, g * x

    def seen(road: Callable[..., Any]) -> list[Any]:
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
        found = road(x)
        grads = torch.autograd.grad(found[2].sum() + found[3].sum(), x)
        return [*grads, *((one.requires_grad, one._is_view(), one.data_ptr() - x.data_ptr()) for one in found[:2])]

    same(seen(to_static(apart, autograd=autograd)), seen(apart))
