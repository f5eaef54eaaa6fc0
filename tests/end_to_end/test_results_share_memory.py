"""Results that are views of each other, or of an argument, on some paths: the caller sees one memory, as in eager."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import same

HOLDER: Any = types.SimpleNamespace(y=None)
CASES: list[Any] = []


def case(function: Any) -> Any:
    CASES.append(function)
    return function


@case
def a_row_that_a_branch_chose(x, c):
    y = x * 1
    v = y[0] if c > 0 else y[1]
    v.mul_(3)
    return y, v


@case
def transposed_by_a_number(x, c):
    y = x * 1
    v = y.transpose(0, int(c))
    v.mul_(3)
    return y, v


@case
def squeezed_by_a_number(x, c):
    y = (x * 1)[None]
    v = y.squeeze(int(c) - 1)
    v.mul_(3)
    return y, v


@case
def unsqueezed_by_a_number(x, c):
    y = x * 1
    v = y.unsqueeze(int(c))
    v.mul_(3)
    return y, v


@case
def a_row_that_a_loop_chose(x, c):
    y = x * 1
    v = y[0]
    i = 0
    while i < c + 1:
        v = y[1] if i > 0 else y[0]
        i += 1
    v.mul_(3)
    return y, v


@case
def flat_in_two_ways(x, c):
    y = x * 1
    v = y.view(-1) if c > 0 else y.flatten()
    v.mul_(3)
    return y, v


@case
def of_an_attribute(x, c):
    y = x * 1
    HOLDER.y = y
    v = HOLDER.y[0] if c > 0 else HOLDER.y[1]
    v.add_(3)
    return y, v


@case
def a_view_of_a_view(x, c):
    y = x * 1
    v = y[0] if c > 0 else y[1]
    w = v[0:1] if c > -1 else v[1:]
    w.add_(3)
    return y, v, w


@case
def of_one_of_two(x, c):
    y = x * 1
    z = x * 2
    v = y[0] if c > 0 else z[1]
    v.mul_(3)
    return y, z, v


@case
def what_it_was_taken_of_is_written(x, c):
    y = x * 1
    v = y[0] if c > 0 else x.sum(0)
    y.mul_(3)
    return v, y


@case
def a_row_by_number(x, c):
    y = x * 1
    v = y[int(c)]
    v.mul_(3)
    return y, v


@case
def one_of_a_list(x, c):
    y = x * 1
    ys = [y[0], y[1]]
    v = ys[int(c)]
    v.mul_(3)
    return y, v, ys


@case
def all_of_it(x, c):
    y = x * 1
    v = y if c > 0 else y * 2
    v.mul_(3)
    return y, v


@case
def detached(x, c):
    y = x * 1
    v = y.detach() if c > 0 else y[0].detach()
    v.mul_(3)
    return y, v


@case
def without_gradients(x, c):
    y = x * 1
    with torch.no_grad():
        v = y[0] if c > 0 else y[1]
        v.mul_(3)
    return y, v


@case
def two_names(x, c):
    y = x * 1
    v = y[0] if c > 0 else y[1]
    w = y[0] if c > 0.5 else y[1]
    v.mul_(3)
    return v, w


@case
def written_on_one_path(x, c):
    y = x * 1
    if c > 0:
        v = y[0]
        v.mul_(2)
    else:
        v = y[1]
    return y, v


@case
def two_rows_in_turn(x, c):
    y = x * 1
    a, b = (y[0], y[1]) if c > 0 else (y[1], y[0])
    a.mul_(2)
    b.add_(a)
    return a, b, y


@case
def turned_or_not(x, c):
    return (x.t() if c > 0 else x[:],)


@case
def turned_by_numbers(x, c):
    d = int(c)
    return (x.permute(d, 1 - d),)


@case
def turned_inside_or_not(x, c):
    y = x * 2
    return (y.t() if c > 0 else y[:],)


@case
def a_column_or_a_row(x, c):
    y = x * 2
    return y, y[:, 0] if c > 0 else y[0]


@case
def turned_in_a_loop(x, c):
    y = x * 2
    i = 0
    while i < c + 1:
        y = y.t()
        i += 1
    return (y,)


@case
def a_path_inside_a_path(x, c):
    if c > 0:
        v = x.t() if x.sum() > 0 else x * 2
    else:
        v = x * 3
    return (v,)


@case
def a_column_by_keywords(x, c):
    y = x * 2
    return y, torch.narrow(y, dim=1, start=0, length=1) if c > 0 else torch.narrow(y, dim=0, start=0, length=1)


@case
def turned_by_a_recursion(x, c):
    def go(v, k):
        return v.t() if k > 0 else go(v, k + 1)

    return (go(x, c),)


@case
def a_column_by_a_recursion(x, c):
    def go(v, k):
        if k > 0:
            return v[:, 1:]
        return go(v, k + 1)

    y = x * 2
    return y, go(y, c)


@case
def turned_and_copied_or_not(x, c):
    r = x.t()
    if c > 0:
        r = r.clone()
    return (r,)


@case
def one_of_two_that_were_there_before(x, c):
    a, b = x[:, 0], x[1]
    return (a if c > 0 else b,)


@case
def a_column_that_was_there_before(x, c):
    h = x * 1
    v = h[:, 0]
    if c > 0:
        v = v * 2
    return h, v


@case
def two_columns_change_places(x, c):
    h = x * 1
    a, b = h[:, 0], h[:, 1]
    if c > 0:
        a, b = b, a
    return h, [a, b]


@case
def turned_before_a_loop(x, c):
    m = x * 2
    t = m.t()
    i = 0
    while i < c:
        t = t[:1]
        i += 1
    return m, t


@case
def detached_or_copied_and_written(x, c):
    z = x.detach()
    if c > 0:
        z = z.clone()
    z.add_(1)
    return x * 1, z


@case
def a_row_of_the_data_or_a_copy(x, c):
    z = x.data[1:]
    i = 0
    while i < c:
        z = z.clone()
        i += 1
    z[0] = 5
    return x * 2, [z[:, :1], z]


@case
def laid_out_anew(x, c):
    t = (x * 2).t()
    if c > 0:
        t = t * 2
    return t * 1, t.contiguous(), t


@case
def laid_out_anew_twice_after_a_loop(x, c):
    t = (x * 2).t()
    i = 0
    while i < c + 1:
        t = t + 1
        i += 1
    first = t.contiguous()
    return [t], first, first.contiguous()


@case
def items_laid_out_anew(x, c):
    items = [(x * 2).t()]
    if c > 0:
        items.append((x * 3).t())
    return [one.contiguous() for one in items], items


ONLY_STRIDES = [turned_inside_or_not, turned_in_a_loop, laid_out_anew, laid_out_anew_twice_after_a_loop,
                items_laid_out_anew]  # fmt: skip
"""The halves of a derivative give contiguous results where only their strides show that."""
WITHOUT_A_HISTORY = [without_gradients]
"""Eager's own views, made without gradients, raise once they are written with them."""


def flat(results: Any) -> list[torch.Tensor]:
    return [one for result in results for one in (result if isinstance(result, list) else [result])]


def observed(function: Any, c: float, needs: bool, strides: bool) -> Any:
    """Values, strides and gradients of the results, and what they are after a write to each."""
    x = (torch.arange(4.0).reshape(2, 2) + 1).requires_grad_(needs)
    results = flat(function(x, torch.tensor(c)))
    found: list[Any] = [[one.detach().clone() for one in results], [one.stride() for one in results if strides]]
    if needs:
        found.append([one.requires_grad for one in results])
        total = sum(one.double().pow(2).sum() for one in results if one.requires_grad)
        found.append(torch.autograd.grad(total, x, retain_graph=True)[0])
    for one in results:
        with torch.no_grad():
            one.add_(100)
        found.append([x.detach().clone(), *(other.detach().clone() for other in results)])
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("options", [{}, {"autograd": "eager"}, {"backend": "c"}], ids=str)
@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("function", CASES)
def test_results_share_memory(function, needs, options):
    if needs and function in WITHOUT_A_HISTORY:
        pytest.skip("eager raises")
    static = to_static(function, **options)
    for c in (1.0, 0.0, 1.0):
        strides = not needs or function not in ONLY_STRIDES
        same(observed(static, c, needs, strides), observed(function, c, needs, strides))
