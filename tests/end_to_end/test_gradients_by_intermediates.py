"""A gradient by a value made inside uses up what was computed from that value, not what made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import grad

from dy2static import to_static
from tests.oracle import check, check_module, check_saved


def itself(x):
    h = x.exp()
    grad((h * h).sum(), h)
    return h


def stepped(x):
    h = x.exp()
    (g,) = grad((h * h).sum(), h)
    return h - 0.1 * g


def linear_in_the_leaf(x):
    h = x * 2
    (g,) = grad((h * h).sum(), h)
    return h * g


def summed(x):
    h = x.exp()
    grad((h * h).sum(), h)
    return h.sum()


def a_branch_after_it(x):
    h = x.exp()
    (g,) = grad((h * h).sum(), h)
    if g.sum() > 20:
        return h * 2
    return h


def asked_in_a_branch(x):
    h = x.exp()
    g = h.detach()
    if x.sum() > 0:
        (g,) = grad((h * h).sum(), h)
    return h * g


def steps_in_a_loop(x):
    h = x.exp()
    while h.sum() > 1:
        h = h.sin()
        (g,) = grad((h * h).sum(), h)
        h = h - 0.3 * g
    return h


def the_value_before_too(x):
    h = x.exp()
    k = h.sin()
    (g,) = grad((k * k).sum(), h)
    return h * g


def one_of_several(x):
    a, b, c = x.exp().unbind()
    a = a * b
    (g,) = grad(a * a, a)
    return a * c * g


def written(x):
    h = x.exp()
    h.mul_(x)
    (g,) = grad((h * h).sum(), h)
    return h * g


def made_in_a_branch(x):
    if x.sum() > 0:
        h = x.exp()
    else:
        h = x * x
    (g,) = grad((h * h).sum(), h)
    return h * g


def some_inputs(x):
    w = torch.ones(3, requires_grad=True)
    h = x * w.detach()
    (h * w).sum().backward(inputs=[w])
    return h * w.grad


def on_to_the_leaf(x):
    h = x.exp()
    (g,) = grad((h * h).sum(), h)
    (on,) = grad(h.sum(), x)
    return g + on


def retained(x):
    h = x.exp()
    (g,) = grad((h * h).sum(), h, retain_graph=True)
    return h, h * g


def differentiable(x):
    h = x.exp()
    (g,) = grad((h * h).sum(), h, create_graph=True)
    return h * g


def nothing_kept(x):
    h = x + 2
    (g,) = grad((h * h).sum(), h)
    return h * g


def what_was_computed(x):
    h = x.exp()
    y = h * h
    grad(y.sum(), h)
    return y


def what_was_between(x):
    h = x.exp()
    k = h.sin()
    grad((k * k).sum(), h)
    return k


def by_the_leaf_as_well(x):
    h = x.exp()
    grad((h * h).sum(), [h, x])
    return h


PROGRAMS = [
    itself, stepped, linear_in_the_leaf, summed, a_branch_after_it, asked_in_a_branch, steps_in_a_loop,
    the_value_before_too, one_of_several, written, made_in_a_branch, some_inputs, on_to_the_leaf, retained,
    differentiable, nothing_kept,
]  # fmt: skip
REFUSED = [what_was_computed, what_was_between, by_the_leaf_as_well]
"""Eager cannot differentiate what they give: it is used up."""


def _calls() -> list[list[Any]]:
    return [[torch.tensor(values, requires_grad=True)] for values in ([0.5, 1.0, 1.5], [-1.0, -2.0, -3.0])]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_what_made_it_is_not_used_up(program: Any, tmp_path: Path) -> None:
    static = check(program, *_calls())
    check_saved(program, static, tmp_path / "f.d2s", *_calls())
    check(program, *_calls(), static=to_static(program, autograd="eager"))


@pytest.mark.parametrize("program", REFUSED, ids=lambda one: one.__name__)
def test_what_was_computed_from_it_is(program: Any) -> None:
    check(program, *_calls())


def unreached(x):
    y = x * 1
    return grad((x * 2).sum(), y)


def the_second_is_unreached(x):
    y = x * 1
    return grad((x * 2).sum(), [x, y])


def unreached_on_a_path(x):
    w = torch.ones(3, requires_grad=True)
    y = w * x
    z = w * 2
    if x.sum() > 0:
        z = y * 2
    return grad(z.sum(), [w, y])


def a_leaf_unreached_on_a_path(x):
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    z = w * 2
    if x.sum() > 0:
        z = w * v
    return grad(z.sum(), [w, v])


def needs_none(x):
    return grad((x * 2).sum(), [x, torch.ones(3)])


def backward_by_what_needs_none(x):
    (x * 2).sum().backward(inputs=[torch.ones(3)])
    return x * 1


MESSAGES = [unreached, the_second_is_unreached, unreached_on_a_path, a_leaf_unreached_on_a_path, needs_none,
            backward_by_what_needs_none]  # fmt: skip


@pytest.mark.parametrize("program", MESSAGES, ids=lambda one: one.__name__)
def test_what_is_said_of_those_that_are_not_reached(program: Any) -> None:
    check(program, *_calls())


class _Weighted(nn.Module):
    """Features weighted by the gradient of a score by them."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.relu(self.features(x))
        (g,) = grad(self.head(a).sum(), a)
        return a * g


def test_a_module() -> None:
    check_module(_Weighted, [torch.tensor([[0.5, 1.0, 1.5], [-1.0, 2.0, 0.0]])])
