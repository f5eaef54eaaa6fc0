"""What a try that failed leaves: nothing. A long loop is traced rolled first, and unrolled where that cannot be."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check

ONE = torch.ones(2)
CALLS = [(sign * ONE, size * ONE) for sign in (1, -1) for size in (1, 0, 2)]


class Box:
    def __init__(self, value):
        self.value = value


def lists_of_two_lengths_after_a_loop(x, y):
    out = []
    for i in range(65):
        out.append(Box(x * i))
    if x.sum() > 0:
        row = [y, 1]
    else:
        row = [y]
    first = row[0]
    first += 1
    return y * 2, first, out[3].value


def a_mode_set_by_a_function(x, y):
    rows = []
    for i in range(65):
        torch.set_grad_enabled(False)
        rows.append(Box(x * i))
    torch.set_grad_enabled(True)
    return rows[4].value, x * y


def a_number_that_was_a_size(x, y):
    n = x[x > 0].shape[0]
    rows = []
    for i in range(65):
        rows.append(Box(torch.zeros(n) + i))
    return torch.zeros(n) + n, rows[2].value, y


PROGRAMS = [lists_of_two_lengths_after_a_loop, a_mode_set_by_a_function, a_number_that_was_a_size]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_code_after_a_failed_try(function):
    check(function, *CALLS)
