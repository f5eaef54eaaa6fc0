"""Tensors that are each other's memory in some runs: which is whose differs by path, and by what a tuple holds."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from tests.oracle import check


def whole(p: Any) -> Any:
    return p


def viewed(p: Any) -> Any:
    return p.view(3)


def either_way(x, part):
    if x.sum() > 0:
        q = x * 2
        p = part(q) if x[0] > 0 else x * 3
    else:
        p = x * 2
        q = part(p) if x[0] > 0 else x * 3
    return p, q


def in_a_loop(x, part):
    p, q = x * 3, x * 4
    for e in x:
        if e > 0:
            q = x * 2
            p = part(q) if x[0] > 0 else x * 3
        else:
            p = x * 2
            q = part(p) if x[0] > 0 else x * 3
    return p, q


def of_three(x, part):
    a, b, c = x * 2, x * 3, x * 4
    if x.sum() > 0:
        b = part(a) if x[0] > 0 else b
        c = part(b) if x[1] > 0 else c
    else:
        a = part(c) if x[0] > 0 else a
        b = part(a) if x[1] > 0 else b
    return a, (b if x[2] > 0 else c)


def in_tuples_of_two_lengths(x, part):
    t = (x * 3, x * 3)
    n = 0
    while n < 2 and x.sum() < 1e5:
        n = n + 1
        if x.sum() > 0:
            q = x * 2
            p = part(q) if x[0] > 0 else x * 3
            t = (p, q, x)
    return t[0], t[1]


def detached_in_tuples_of_two_lengths(x, part):
    t = (x * 3, x * 3)
    for _ in range(int((x > 0).sum())):
        q = x * 0.5
        p = part(q.detach())
        p += q
        t = (p, q, x)
    return t[0], t[1]


def given_back_early(x, part):
    t = (x * 3, x * 3)
    for e in x:
        if e > 2.5:
            return t
        if e > 0:
            t = (part(t[1]), t[1], x)
    return t[0], t[1]


def one(p, q, x):
    p.add_(1)


def other(p, q, x):
    q.add_(1)


def of_either(p, q, x):
    r = p if x[1] > 0 else q
    r.add_(1)


def detached(p, q, x):
    p.detach().add_(1)


def unseen(p, q, x):
    p.data.add_(1)


MADE = [either_way, in_a_loop, of_three, in_tuples_of_two_lengths, detached_in_tuples_of_two_lengths, given_back_early]
WRITES = [one, other, of_either, detached, unseen]
X = list(itertools.product((1.0, -2.0), (2.0, -0.5), (3.0, -1.0)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("part", [whole, viewed])
@pytest.mark.parametrize("made", MADE)
def test_a_write_is_seen_through_the_other(made: Any, part: Any, write: Any, gradient: bool) -> None:
    def f(x):
        p, q = made(x, part)
        write(p, q, x)
        return p * 1, q * 1

    check(f, *[(torch.tensor(x, requires_grad=gradient),) for x in X], paths=("program",))


def test_what_only_some_paths_give_is_no_value_of_the_memory() -> None:
    """A write that autograd does not see, where another result is that memory on a path that returned."""

    def f(x, y):
        t = (x * 3, y * 3)
        z = t[1] * t[1]
        if y.sum() > 0:
            if y[2] > 2:
                return t
        t[1].data.add_(1)
        return t[0] * 1, t[1] * 1, z, t[0] is t[1]

    check(f, *[(torch.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)) for x in X])
