"""Whether a gradient needs one itself, where what it is made of needs one on some paths, or is a number of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import grad

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check

Tensor = torch.Tensor


def _weight(y: Tensor) -> Tensor:
    w = torch.ones(3)
    if y.sum() > 0:
        w = y * 2
    return w


def by_a_weight(x: Tensor, y: Tensor) -> Any:
    (g,) = grad((x * _weight(y)).sum(), x, create_graph=True)
    return g.requires_grad, g


def by_a_weight_and_itself(x: Tensor, y: Tensor) -> Any:
    (g,) = grad((x * x * _weight(y)).sum(), x, create_graph=True)
    return g.requires_grad, g


def through_several(x: Tensor, y: Tensor) -> Any:
    w = _weight(y)
    (g,) = grad(((x * 3 + w) * w).sum(), x, create_graph=True)
    (h,) = grad((x / w).sum(), x, create_graph=True)
    (k,) = grad((x + w).sum(), x, create_graph=True)
    return g.requires_grad, h.requires_grad, k.requires_grad


def decides(x: Tensor, y: Tensor) -> Any:
    (g,) = grad((x * _weight(y)).sum(), x, create_graph=True)
    if g.requires_grad:
        return g * 5
    return x * g


def asked_again(x: Tensor, y: Tensor) -> Any:
    (g,) = grad((x * _weight(y)).sum(), x, create_graph=True)
    return grad(g.sum(), y, allow_unused=True)[0]


def by_a_power(x: Tensor, y: Tensor) -> Any:
    n = 0
    if y.sum() > 0:
        n = 2
    (g,) = grad((x**n).sum(), x, create_graph=True)
    return g.requires_grad, g


def by_a_number(x: Tensor, y: Tensor) -> Any:
    n = y.sum().item()
    (g,) = grad((x * n).sum(), x, create_graph=True)
    (h,) = grad((x.exp() * n).sum(), x, create_graph=True)
    return g.requires_grad, h.requires_grad


FUNCTIONS = [by_a_weight, by_a_weight_and_itself, through_several, decides, asked_again, by_a_power, by_a_number]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_run_tells_what_the_path_decides(function: Callable[..., Any]) -> None:
    values = ([1.0, 0.5, 3.0], [1.0, 0.5, -9.0], [2.0, 2.0, 2.0], [-1.0, -1.0, -1.0])
    check(function, *(
        (torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor(one, requires_grad=True)) for one in values
    ), none_is_zero=True)  # fmt: skip


def test_a_zero_that_nobody_made_a_leaf_is_called_one() -> None:
    def f(x: Tensor, y: Tensor) -> Any:
        return grad((x * 2).sum(), (x, y), create_graph=True, materialize_grads=True)[1]

    with pytest.raises(Dy2StaticError, match="^.D2S228. a zero gradient, which needs a gradient with") as found:
        to_static(f)(torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True))
    assert "requires_grad_()" not in str(found.value)
