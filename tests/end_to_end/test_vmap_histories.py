"""Whether a tensor needs a gradient, where rows have met of which some have a history and some have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from tests.over_rows import judge

Tensor = torch.Tensor


def of_a_path(x: Tensor) -> Any:
    p = x.detach() if x.sum() > 0 else x
    return p.requires_grad


def of_what_is_computed(x: Tensor) -> Any:
    p = x.detach() if x.sum() > 0 else x
    return (p * 2).requires_grad, (p + x).requires_grad, (p.detach() * 2).requires_grad, p[1:].exp().requires_grad


def decides(x: Tensor) -> Any:
    q = (x.detach() if x.sum() > 0 else x) * 2
    if q.requires_grad:
        return q * 10
    return q


def decides_in_a_loop(x: Tensor) -> Any:
    p, n = x.detach(), 0
    while n < 3 and x.sum() > n:
        p, n = p * x, n + 1
    return p * 3 if p.requires_grad else p.detach() + 1


def of_what_is_written(x: Tensor) -> Any:
    p = torch.ones(3)
    if x.sum() > 0:
        p[1:] = x[:2]
    q = p * 1
    q[0] = 5
    return p.requires_grad, q.requires_grad, q


def of_a_list(x: Tensor) -> Any:
    held = [torch.ones(3), x * 2]
    if x.sum() > 0:
        held.reverse()
    return held[0].requires_grad, held[1].requires_grad, torch.stack(held).requires_grad


def without_gradients(x: Tensor) -> Any:
    p = x if x.sum() > 0 else torch.ones(3)
    with torch.no_grad():
        q = p * 2
    return q.requires_grad, p.requires_grad, q


def inside_a_branch(x: Tensor) -> Any:
    p = x if x.sum() > 0 else torch.ones(3)
    if x.sum() <= 0:
        return (p * 2).requires_grad, x
    return (p * 3).requires_grad, x * 2


def with_a_number(x: Tensor) -> Any:
    p = x if x.sum() > 0 else torch.ones(3)
    return (p * x[0].item()).requires_grad, (p * x.detach()).roll(int(x.sum() > 0)).requires_grad


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w, x + 1

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.saved_tensors[0] + h, None


def written_with_it(x: Tensor) -> Any:
    p = x.detach() if x.sum() > 0 else x
    q, r, s, t = torch.zeros(3), torch.zeros(4), torch.zeros(3), torch.ones(2, 3)
    q.add_(p)
    r[1:] = p
    s.copy_(p)
    t[0].mul_(p)[1:] = 2
    with torch.no_grad():
        u = torch.zeros(3)
        u.add_(p)
    return [one.requires_grad for one in (q, r, s, t, u)], q, r, s, t


def written_into_it(x: Tensor) -> Any:
    p = (x.detach() if x.sum() > 0 else x) * 1
    p[0] = 3
    q = p.clone()
    q += x
    with torch.no_grad():
        p.mul_(x)
    return p.requires_grad, q.requires_grad, p, q


def by_a_function(x: Tensor) -> Any:
    p = x.detach() if x.sum() > 0 else x
    q, (r, s) = Doubled.apply(p), Weighted.apply(p, x.detach())
    if q.requires_grad:
        s = s * 2
    return q.requires_grad, r.requires_grad, s.requires_grad, (q + r).requires_grad, s


WEIGHT = torch.ones(3, requires_grad=True)


def asked_for(x: Tensor) -> Any:
    p, z = WEIGHT * x.detach() if x.sum() > 0 else x.detach() * 1, torch.zeros(3)
    z.add_(p)
    if z.requires_grad:
        return torch.autograd.grad(z.sum(), WEIGHT)[0]
    return torch.zeros(3) - 1


ROWS = {
    "mixed": [[2.0, 2.0, 2.0], [-1.0, -1.0, -1.0]], "all": [[2.0, 2.0, 2.0], [3.0, 1.0, 0.5]],
    "none": [[-1.0, -1.0, -1.0], [-2.0, -1.0, 0.5]],
    "many": [[0.1, 0.2, 0.3], [-1.0, 0.5, 0.0], [3.0, 3.0, 3.0], [-4.0, 1.0, 2.0]],
}  # fmt: skip
FUNCTIONS = [of_a_path, of_what_is_computed, decides, decides_in_a_loop, of_what_is_written, of_a_list,
             without_gradients, inside_a_branch, with_a_number, written_with_it, written_into_it, by_a_function,
             asked_for]  # fmt: skip


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_each_row_has_its_own_answer(function: Callable[[Tensor], Any], rows: str) -> None:
    calls = [[torch.tensor(row, requires_grad=True)] for row in ROWS[rows]]
    assert judge(lambda: function, calls) == "same"


def met_and_parted(x: Tensor) -> Any:
    p = x if x.sum() > 0 else torch.ones(3)
    r = torch.ones(3)
    if x.sum() <= 0:
        r = p * 2
    return r


def met_and_detached(x: Tensor) -> Any:
    p = x if x.sum() > 0 else torch.ones(3)
    return p.detach() if x.sum() > 0 else p


def item_and_parted(x: Tensor) -> Any:
    p = [x, torch.ones(3)][int(x.sum() <= 0)]
    return p * 2 if x.sum() <= 0 else torch.ones(3)


def met_in_a_loop(x: Tensor) -> Any:
    p, y = torch.ones(3), x
    while y.sum() > 0:
        p, y = p * y, y - 1
    return p * 2 if x[0] < 0 else torch.ones(3)


def met(x: Tensor) -> Any:
    return x if x.sum() > 0 else torch.ones(3)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("function", [met_and_parted, met_and_detached, item_and_parted, met_in_a_loop, met],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_a_result_without_history_in_any_row_has_none(function: Callable[[Tensor], Tensor], rows: str) -> None:
    x = torch.tensor(ROWS[rows], requires_grad=True)
    expected = [function(row) for row in x]
    got = dy2static.vmap(function)(x)
    torch.testing.assert_close(got, torch.stack(expected))
    assert got.requires_grad == any(one.requires_grad for one in expected)
    if got.requires_grad:
        (gradient,) = torch.autograd.grad(got.sum(), x)
        (wanted,) = torch.autograd.grad(torch.stack(expected).sum(), x)
        torch.testing.assert_close(gradient, wanted)
