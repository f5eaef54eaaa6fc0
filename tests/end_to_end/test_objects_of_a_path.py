"""Objects, and variables of functions, that one path makes and changes: other paths do not have them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from tests.oracle import check


@dataclass
class Record:
    value: object
    count: int = 0


class Box:
    def __init__(self, v):
        self.v = v
        self.n = 0


def made_and_dropped(x):
    if x.sum() > 0:
        pass
    else:
        r = Record(x * 2, (x > 0).sum().item())
        r.count += 1
    return x


def made_again(x):
    r = Record(x, 1)
    if x.sum() > 0:
        r.count += 2
    else:
        r = Record(x * 2, (x > 0).sum().item())
        r.count += 1
    return r.value, r.count


def made_on_both(x):
    if x.sum() > 0:
        r = Box(x)
    else:
        r = Box(x * 2)
        r.n = (x > 0).sum().item()
        r.n += 1
    r.n += 1
    return r.v, r.n


def an_attribute_leaves(x):
    keep = []
    if x.sum() > 0:
        keep.append(1)
    else:
        r = Box(x * 2)
        r.n = (x > 0).sum().item()
        r.n += 1
        keep.append(r.n)
    return keep


def becomes_an_attribute(x):
    b = Box(x)
    b.child = Box(x)
    if x.sum() > 0:
        pass
    else:
        r = Box(x * 2)
        r.n = (x > 0).sum().item()
        r.n += 1
        b.child = r
        r.n += 3
    return b.child.n, b.child.v


def counter(x, start):
    m = start
    if x[0] > 0.5:
        m = start * 2

    def count():
        nonlocal m
        m = m + 1
        return m

    return count


def function_leaves(x):
    if x.sum() > 0:
        count = counter(x, 3)
        count()
    else:
        count = lambda: 0
    return x * count()


def function_over_a_tensor_leaves(x):
    if x.sum() > 0:
        count = counter(x, x * 3)
        count()
    else:
        count = lambda: 0
    return x * count()


def function_on_both(x):
    if x.sum() > 0:
        count = counter(x, 1)
        if x[0] > 0.5:
            count()
    else:
        count = counter(x, 2)
        count()
        count()
    return x * count()


def function_in_a_cycle(x):
    box = None
    s = 0
    if x.sum() > 0:
        box = Box(x)
        box.v = counter(x, x * 3)
        box.n = box
        s = box.v() + box.v()
        box = None
    return x * s


def function_of_an_iteration(x):
    s = 0.0
    i = 0
    while i < (x > 0).sum():
        count = counter(x, x * i)
        count()
        s = s + count().sum()
        i = i + 1
    return x * s


def older_function(x):
    count = counter(x, 1)
    if x.sum() > 0:
        count()
    return x * count()


def at_most(value, limit):
    if value > limit:
        raise ValueError("too large")
    return value


def after_a_caught_error(x):
    def inner(i):
        if x.sum() > 1.0:
            pass
        else:
            m = 3
        try:
            at_most(2, 1)
        except ValueError:

            def count():
                nonlocal m
                m = m + 1

            count()
        return i

    if x.sum() > 0:
        pass
    else:
        inner(3)
    return x


FUNCTIONS = (
    function_leaves,
    function_over_a_tensor_leaves,
    function_on_both,
    function_in_a_cycle,
    function_of_an_iteration,
    older_function,
    after_a_caught_error,
)
PROGRAMS = (made_and_dropped, made_again, made_on_both, an_attribute_leaves, becomes_an_attribute)


@pytest.mark.parametrize("program", [*PROGRAMS, *FUNCTIONS], ids=lambda program: program.__name__)
def test_object(program):
    check(program, (torch.ones(3),), (-torch.ones(3),), (torch.tensor([1.0, -3.0, 0.5]),))
