"""A variable that begins with a list of its own, and is another's on one path and a new one on the other."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check

VALUES = ([1.0, 1.0], [1.0, -5.0], [-5.0, 1.0], [-1.0, -1.0], [2.0, -1.0], [-1.0, 3.0])
CALLS = [(torch.tensor(values),) for values in VALUES]


def of_a_sum(x):
    p, q, r = [], [x], [x * 2, x]
    if x.sum() > 0:
        p = q
    else:
        p = r + [x]
    return p is q


def of_a_sum_that_is_returned(x):
    p, q, r = [], [x], [x * 2, x]
    if x.sum() > 0:
        p = q
    else:
        p = r + [x]
    p.append(x * 5)
    return p is q, p, q, r


def of_one_of_several(x):
    p, q, r = [], [x], [x * 2, x]
    if x[0] > 0:
        r = r + [x * 3]
    if x.sum() > 0:
        r, p = p, r
        p = q
    else:
        p = r + [x]
        if x[1] > 0:
            p[0] = x
        else:
            p.append(x)
    return p is q, p, q


def dicts(x):
    p, q = {}, {"a": x}
    if x.sum() > 0:
        p = q
    else:
        p = {"a": x * 2}
    p["b"] = x
    return p is q, p, q


def swapped(x):
    p, q, r = [x], [x * 2], [x * 3]
    if x.sum() > 0:
        p, q = q, p
    else:
        p = [x * 4]
        r = q
    p.append(x)
    return p is q, r is q, p, q, r


def in_a_loop(x):
    p, q = [], [x]
    for i in range(3):
        if x[i % 2] > 0:
            p = q
        else:
            p = [x * i]
    p.append(x * 7)
    return p is q, p, q


PROGRAMS = [of_a_sum, of_a_sum_that_is_returned, of_one_of_several, dicts, swapped, in_a_loop]


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("gradient", [False, True])
def test_which_list_it_is(function, gradient):
    check(function, *[(x.clone().requires_grad_(gradient),) for x, in CALLS])
