"""``requires_grad`` and ``grad_fn`` of a gradient that was asked for inside, with ``create_graph=True``."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import grad

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check


def _chosen(x, g):
    return x * 2 if g.requires_grad else x * 3


def constant(x):
    (g,) = grad((x * 2).sum(), x, create_graph=True)
    return _chosen(x, g)


def of_a_leaf_made_inside(x):
    w = torch.ones(3, requires_grad=True)
    (g,) = grad((w * 2).sum(), w, create_graph=True)
    return _chosen(x, g)


def of_a_copy(x):
    w = x.detach().clone().requires_grad_()
    (g,) = grad((w * 2).sum(), w, create_graph=True)
    return _chosen(x, g)


def asked_for_grad_fn(x):
    (g,) = grad((x * 2).sum(), x, create_graph=True)
    return x * 2 if g.grad_fn is None else x * 3


def given_back(x):
    (g,) = grad((x * 2).sum(), x, create_graph=True)
    return g


def exponential(x):
    (g,) = grad(x.exp().sum(), x, create_graph=True)
    return _chosen(x, g)


def rectified(x):
    (g,) = grad(x.relu().sum(), x, create_graph=True)
    return _chosen(x, g)


def squared(x):
    (g,) = grad((x**2).sum(), x, create_graph=True)
    return _chosen(x, g)


def without_create_graph(x):
    (g,) = grad((x * 2).sum(), x)
    return _chosen(x, g)


def zeros(x):
    y = x * 1
    (g,) = grad((x * 2).sum(), y, create_graph=True, materialize_grads=True)
    return _chosen(x, g)


def zeros_without_create_graph(x):
    y = x * 1
    (g,) = grad((x * 2).sum(), y, materialize_grads=True)
    return _chosen(x, g)


def a_branch(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x.exp()
    (g,) = grad(y.sum(), x, create_graph=True)
    return _chosen(x, g)


def a_loop(x):
    y = x * 1
    while y.sum() < 10:
        y = y * 2 + 9
    if x.sum() < 0:
        return x
    (g,) = grad(y.sum(), x, create_graph=True)
    return _chosen(x, g)


def another_factor(x):
    w = torch.ones(3, requires_grad=True)
    (g,) = grad((x * w).sum(), x, create_graph=True)
    return _chosen(x, g)


def a_second_one(x):
    (g,) = grad((x * 2).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    return h


def given_one(x):
    (g,) = grad(x * 2, x, torch.ones(3, requires_grad=True), create_graph=True)
    return _chosen(x, g)


def several_operators(x):
    w = torch.ones(3) * 3
    y = torch.nn.functional.linear(x, torch.ones(2, 3)).sum() + x.mean() - w.sum()
    (g,) = grad(y, x, create_graph=True)
    return _chosen(x, g), g


def a_choice_of_elements(x):
    (g,) = grad(x.max(), x, create_graph=True)
    return _chosen(x, g), g


def used(x):
    (g,) = grad((x * 2).sum(), x, create_graph=True)
    return g * x, g.is_leaf


def a_second_of_a_second(x):
    (g,) = grad((x.exp() * 1).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x, create_graph=True)
    return _chosen(x, h), h


def by_an_intermediate(x):
    h = x.exp()
    (g,) = grad((h * 2).sum(), h, create_graph=True)
    return _chosen(x, g), g


def zeros_used(x):
    y = x * 1
    (g,) = grad((x * 2).sum(), y, create_graph=True, materialize_grads=True)
    return _chosen(x, g * 1)


def written_rows(x):
    y = torch.zeros(3)
    y[0] = x[0] * 2
    y[1:] = x[1:]
    (g,) = grad(y.sum(), x, create_graph=True)
    return _chosen(x, g), g


def without_gradients(x):
    with torch.no_grad():
        (g,) = grad(x.exp().sum(), x, create_graph=True)
    return _chosen(x, g), g


def none_on_a_path(x):
    y = x * 1
    z = x * 2
    if x.sum() > 0:
        z = z + y
    (g,) = grad(z.sum(), y, create_graph=True, allow_unused=True)
    return x if g is None else _chosen(x, g)


PROGRAMS = [
    constant, of_a_leaf_made_inside, of_a_copy, asked_for_grad_fn, given_back, exponential, rectified, squared,
    without_create_graph, zeros, zeros_without_create_graph, a_branch, a_loop, another_factor, a_second_one,
    given_one, several_operators, a_choice_of_elements, used, a_second_of_a_second, by_an_intermediate,
    zeros_used, written_rows, without_gradients, none_on_a_path,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_what_it_says_of_itself(program: Any) -> None:
    calls = [[torch.tensor(values, requires_grad=True)] for values in ([0.5, 1.0, 1.5], [-1.0, -2.0, -3.0])]
    check(program, *calls)
    check(program, *calls, static=to_static(program, autograd="eager"))


def test_zeros_that_are_a_leaf_are_not_given_back() -> None:
    def program(x):
        y = x * 1
        return grad((x * 2).sum(), y, create_graph=True, materialize_grads=True)

    with pytest.raises(Dy2StaticError, match="D2S228"):
        to_static(program)(torch.ones(3, requires_grad=True))
