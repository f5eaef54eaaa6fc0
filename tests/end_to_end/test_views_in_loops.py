"""Views that an iteration makes, at places that it computes: writes to either after and inside the loop."""

from __future__ import annotations

import pytest
import torch

import dy2static
from tests.oracle import check

X = torch.tensor([[1.0, -2.0], [3.0, 0.5], [-1.0, 0.2]])
COUNTS = [torch.zeros(3), torch.tensor([1.0, 0, 0]), torch.tensor([1.0, 1, 0]), torch.ones(3)]


def last_row(x, b):
    a = x * 1
    last = a[0]
    i = 0
    while i < b.sum():
        last = a[i]
        i = i + 1
    last.add_(1)
    return a, last


def row_of_some_iteration(x, b):
    a = x * 1
    last = a[0]
    i = 0
    while i < b.sum():
        if a[i].sum() > 0:
            last = a[i]
        i = i + 1
    last.mul_(2)
    a[0] += 1
    return a, last


def row_written_in_the_next_iteration(x, b):
    a = x * 1
    last = a[0]
    i = 0
    while i < b.sum():
        last.add_(0.5)
        last = a[i]
        i = i + 1
    a.mul_(2)
    return a, last


def row_or_new_tensor_written_inside(x, b):
    a = x * 1
    last = x[1] * 2
    i = 0
    while i < b.sum():
        if a[i].mean() > 0.5:
            last = a[i]
        last.mul_(1.5)
        i = i + 1
    a.mul_(2)
    return a, last


def rows_by_slice(x, b):
    a = x * 1
    w = a[0:1]
    i = 0
    while i < b.sum():
        w = a[i : i + 1]
        if b.mean() < 0.9:
            w[0, 0] = 7.0
        i = i + 1
    w += 1
    return a, w


def one_row_kept_by_later_iterations(x, b):
    a = x * 1
    last = a[0] * 2
    i = 0
    while i < b.sum():
        if a[i].sum() > 0:
            last = a[0]
        i = i + 1
    last.mul_(2)
    return a, last


def whole_tensor_kept_by_later_iterations(x, b):
    a = x * 1
    p = a * 2
    q = a * 3
    i = 0
    while i < b.sum():
        if a[i].sum() > 0:
            p = q
        i = i + 1
    p.mul_(2)
    return a, p, q


def row_of_a_tensor_that_is_rebound(x, b):
    a = x * 1
    p = a * 2
    q = a[0]
    i = 0
    while i < b.sum():
        if a[i].sum() > 0:
            q = p[i]
        else:
            p = p + 1
        i = i + 1
    p.mul_(2)
    q.add_(1)
    return a, p, q


@pytest.mark.parametrize(
    "function",
    [
        last_row,
        row_of_some_iteration,
        row_written_in_the_next_iteration,
        row_or_new_tensor_written_inside,
        rows_by_slice,
        one_row_kept_by_later_iterations,
        whole_tensor_kept_by_later_iterations,
        row_of_a_tensor_that_is_rebound,
    ],
)
def test_writes_reach_what_shares_memory(function):
    check(function, *[(sign * X, count) for sign in (1, -1) for count in COUNTS])


@pytest.mark.parametrize("function", [last_row, row_of_some_iteration, one_row_kept_by_later_iterations])
def test_gradients(function):
    check(function, *[((sign * X).requires_grad_(), count) for sign in (1, -1) for count in COUNTS])


def known_to_no_name_before(x):
    t = x * 1
    k = None
    for j in range((x > 0).sum()):
        t += 1
        if j == 0:
            k = t
    return t, k


def test_a_write_reaches_what_an_earlier_iteration_kept():
    check(known_to_no_name_before, (torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-1.0, -2.0, -3.0]),))


def reversed_rows(x):
    a = x * 1
    c = 0.0
    for i, r in enumerate(reversed(a)):
        c = c * 2 + r * i
        a.mul_(2)
    return a, c, reversed(a)


def test_reversed_rows_are_a_copy():
    spec = [dy2static.InputSpec([None], torch.float32)]
    static = dy2static.to_static(reversed_rows, input_spec=spec)
    check(reversed_rows, (torch.arange(3.0),), (-torch.ones(4),), static=static)
    check(reversed_rows, (torch.arange(3.0, requires_grad=True),))
