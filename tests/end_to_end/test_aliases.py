"""Writes to memory that is other memory on some paths, or in some iterations, only: eager is the oracle."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check


def begins_shared(x, n):
    b = x * 2
    keep = b
    i = 0
    while i < n.sum():
        b += 1
        b = b * 2
        i += 1
    return keep, b


def left_shared(x, n):
    a = x * 2
    b = x * 3
    i = 0
    while i < n.sum():
        b += 1
        b = a
        i += 1
    return a, b


def in_a_branch(x, n):
    a = x * 2
    if n.sum() > 2:
        b = a
    else:
        b = x * 3
    b += 1
    return a, b


def view_in_a_branch(x, n):
    a = x * 2
    if n.sum() > 2:
        b = a[1:]
    else:
        b = x[:2] * 3
    a *= 2
    b += 1
    a -= 1
    return a, b


def two_views_in_a_branch(x, n):
    if n.sum() > 2:
        y = x * 2
        b = y
        c = y[1:]
    else:
        b = x * 3
        c = x[:2] * 2
    b += 1
    c *= 2
    return b, c


def best_so_far(x, n):
    i = 0
    h = x * 1
    best = h
    while i < n.sum():
        h = h * 1.5
        if h.sum() > -1:
            best = h
        h += 0.25
        i += 1
    best -= 1
    return h, best


def swap(x, n):
    i = 0
    a = x * 1
    b = x * 2
    while i < n.sum():
        a, b = b, a
        a += 1
        b *= 2
        i += 1
    return a, b


def branch_in_a_loop(x, n):
    i = 0
    a = x * 1
    b = a
    while i < n.sum():
        if a.sum() > 0:
            a = a * 2
        else:
            b = a
        b += 1
        i += 1
    a -= 1
    return a, b


def argument_on_one_path(x, n):
    b = x
    if n.sum() > 2:
        b = x * 2
    b += 1
    return b


def slices_in_a_loop(x, n):
    a = x * 1
    b = a
    for i in range(int(n.sum())):
        if i > 0:
            if a.sum() > 0:
                b = a[0:2]
            else:
                a = x * 3
        b *= 2
        b = b * 1
        c = b
        if i > 1:
            a = c
        a += 1
    return a, b, c if n.sum() > 0 else None


PROGRAMS = (
    begins_shared,
    left_shared,
    in_a_branch,
    view_in_a_branch,
    two_views_in_a_branch,
    best_so_far,
    swap,
    branch_in_a_loop,
    argument_on_one_path,
    slices_in_a_loop,
)


def calls():
    """From no iteration to four."""
    for seed, n in enumerate((0.0, 1.0, 2.0, 3.0, 4.0)):
        x = torch.randn(3, generator=torch.Generator().manual_seed(seed)).requires_grad_()
        yield x, torch.tensor([n])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_write(program):
    check(program, *calls(), tolerance=1e-6, none_is_zero=True)


def test_nothing_is_recorded_without_a_write():
    def choose(x, n):
        y = x * 2
        z = y if n.sum() > 2 else x * 3
        return y + z

    converted = to_static(choose)
    converted(torch.ones(3), torch.ones(1))
    program = converted.concrete_program(torch.ones(3), torch.ones(1)).program
    assert [len(op.outputs) for op in program.block.walk() if op.name == "cond"] == [1]


def test_a_write_costs_one_cond_for_what_may_be_the_same():
    def add(x, n):
        y = x * 2
        z = y if n.sum() > 2 else x * 3
        z += 1
        return y, z

    converted = to_static(add)
    program = converted.concrete_program(torch.ones(3), torch.ones(1)).program
    assert [op.name for op in program.block.walk()].count("cond") == 2


def swapped_often(x, write):
    a, b, c, d = x * 1, x * 2, x * 3, x * 4
    for number in range(12):
        if x.sum() > number - 6:
            a, b = b, a
            c = a
        else:
            b, c = c, d
            d = a
    for _ in range((x > 0).sum()):
        for number in range(6):
            if x[0] > number - 3:
                a, b, d = b, c, a
            else:
                c, d = d, a
    if write:
        a += 1
    return a, b, c, d


def test_tensors_that_may_be_many_others():
    calls = [(torch.tensor(values, requires_grad=True), False) for values in ([1.0, 2.0], [-1.0, -2.0], [0.5, -3.0])]
    check(swapped_often, *calls)
    with pytest.raises(TraceError) as caught:
        to_static(swapped_often)(calls[0][0], True)
    assert caught.value.code == "D2S222"
