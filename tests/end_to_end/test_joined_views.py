"""Views that autograd does not let be written, which only some path or iteration leaves: eager raises there only."""

from __future__ import annotations

import pytest
import torch

import dy2static
from tests.oracle import check


def written_on_the_path_that_makes_it(x):
    a = x * 1
    p = x[0] * 2
    if x.sum() > 0:
        p, q, r = a
        a.mul_(2)
    return a + p


def row_of_one_path_is_written(x):
    a = x * 1
    p, q, r = a
    b = x[0] * 2
    if x.sum() > 0:
        b = q
    b.mul_(2)
    return a.sum() + b


def row_of_the_iteration_before(x):
    a = x * 1
    p = x[0] * 2
    i = 0
    c = 0.0
    while i < (x > 0).sum():
        c = c + p
        p, q, r = a
        if c > 1.5:
            a.mul_(2)
        i += 1
    return a, c


def slice_of_a_row_of_one_path(x):
    a = x.view(1, 3).repeat(3, 1) * 1
    p = a[0] * 3
    if x[0] > 0:
        p, q, r = a
    w = p[1:]
    if x[1] > 0:
        a.mul_(2)
    return a, w * 2


def rows_of_a_branch_and_an_iteration(x):
    a = x * 1
    p, q, r = a
    b = x[1] * 2
    if x[0] > 0:
        b = q
    i = 0
    c = 0.0
    while i < (x > 0).sum():
        c = c + b
        if x[2] > 0:
            b = r
        i += 1
    if x[1] > 0:
        a.mul_(2)
    return a, c, b * 2


def rows_in_a_list(x):
    a = x * 1
    rows = [x[0] * 2, x[1] * 3, x[2]]
    if x.sum() > 0:
        rows = list(a.unbind())
    a.mul_(2)
    return a, rows[0] * 2


def rows_of_either(x):
    a = x * 1
    b = x * 2
    if x[0] > 0:
        p, q, r = a
    else:
        p, q, r = b
    if x[1] > 0:
        a.mul_(2)
    return a, b, q * 2


def rows_of_unbind_or_split(x):
    a = x * 1
    b = x * 2
    if x[0] > 0:
        p, q, r = a
    else:
        p, q = b[:2].split(1)
        p, q = p[0], q[0]
    if x[1] > 0:
        b.mul_(2)
    return a, b, q * 2


def no_grad_view_of_one_path(x):
    a = x * 1
    with torch.no_grad():
        v = a[1:]
    w = x[1:] * 3
    if x[0] > 0:
        w = v
    if x[1] > 0:
        a.mul_(2)
    return a, w * 2


def row_or_a_constant(x):
    a = x * 1
    b = x[0].detach() * 2
    p, q, r = a
    if x[0] > 0:
        b = q
    if x[1] > 0:
        a.mul_(2)
    return a, b * x


def row_of_what_a_path_made(x):
    a = x * 1
    b = x[0] * 2
    if x[0] > 0:
        z = x * 5
        p, b, r = z
        z.mul_(x[1])
    return a, b * x


def row_beside_what_a_path_made(x):
    a = x * 1
    z = x * 2
    b = x[0] * 2
    if x[0] > 0:
        z = x * 5
        p, b, r = z
    if x[1] > 0:
        z.mul_(x[1])
    return a, b * x, z


def row_of_nested_loops(x):
    a = x * 1
    r = x[0] * 1
    for i in range((x > 0).sum()):
        for j in range((x > 1).sum()):
            if x[0] > 0:
                r = a.unbind()[1]
            if x[2] > 0:
                a += 1
    return a, r * 2


def rows_after_the_write(x):
    a = x * 1
    p = x[0] * 2
    if x.sum() > 0:
        a.mul_(2)
        p, q, r = a
    return a + p


def row_carried_round(x):
    a = x * 1
    p = x[0] * 2
    i = 0
    c = 0.0
    while i < (x > 0).sum():
        c = c + p
        p, q, r = a
        i += 1
    return a, c, p


def rows_in_a_list_that_stay(x):
    a = x * 1
    rows = [x[0] * 2, x[1] * 3, x[2]]
    if x.sum() > 0:
        rows = list(a.unbind())
    return a, rows[0] * 2, rows[1] + a


def row_of_a_new_tensor(x):
    a = x * 1
    c = 0.0
    r = x[0] * 1
    for i in range((x > 0).sum()):
        a = a * 2
        for r in a:
            c = c + r
        a += 1
    return a, c


def row_of_what_was_copied(x):
    a = x * 1
    c = 0.0
    r = x[0] * 1
    for i in range((x > 0).sum()):
        for r in a:
            c = c + r
            if c > 3:
                break
    a = a * 1
    a += 1
    return a, c, r * 2


def row_of_either_name(x):
    a = x * 1
    p, q, r = a
    if x.sum() > 0:
        p = q
    a.mul_(2)
    return a, p * 2


def row_that_an_iteration_takes(x):
    a = x * 1
    p, q, r = a
    i = 0
    while i < (x > 0).sum():
        p = q
        i += 1
    a.mul_(2)
    return a, p * 2


def last_row_of_a_loop(x):
    a = x * 1
    i = 0
    r = x[0] * 2
    while i < (x > 0).sum():
        for r in a:
            pass
        i += 1
    a.mul_(2)
    return a, r * 2


def row_that_one_path_gives_a_history(x):
    a = torch.zeros(3)
    p, q, r = a
    if x.sum() > 0:
        a.add_(x)
    return a, q * 2


def row_that_an_iteration_gives_a_history(x):
    a = torch.zeros(3)
    p, q, r = a
    i = 0
    c = 0.0
    while i < (x > 0).sum():
        c = c + q
        a.add_(1)
        if x[0] > 0:
            a.add_(x)
        i = i + 1
    return a, c, q * 2


def row_that_another_name_gives_a_history(x):
    a = torch.zeros(3)
    p, q, r = a
    b = torch.ones(3)
    if x[0] > 0:
        b = a
    b.add_(x)
    return a, b, q * 2


def row_that_gets_none(x):
    a = torch.zeros(3)
    p, q, r = a
    if x[0] > 0:
        a.add_(1)
    if x[1] > 0:
        a.add_(x.detach())
    if x[2] > 0:
        with torch.no_grad():
            a.add_(x)
    return a, q * 2 + x


def row_written_round(x):
    a = x * 1
    c = 0.0
    for r in a:
        c = c + r
        a -= a
    return a + c


def row_written_itself(x):
    a = x * 1
    for i, r in enumerate(a):
        r.mul_(2)
    return a


def row_after_the_loop(x):
    a = x * 1
    r = x[0] * 2
    for r in a:
        pass
    a.mul_(2)
    return a + r


def rows_read_before(x):
    a = x * 1
    c = 0.0
    for r, t in zip(a, x):
        c = c + r + t
    a.mul_(2)
    return a + c


def rows_under_no_grad(x):
    a = x * 1
    with torch.no_grad():
        for r in a:
            r.mul_(2)
    return a


def row_that_only_iterations_bring(x):
    a = x * 1
    i = 0
    while i < (x > 0).sum():
        p, r, q = a
        i += 1
    a.mul_(2)
    if x[0] > 0:
        return a + r
    return a


def row_of_an_earlier_iteration(x):
    a = x * 1
    i = 0
    c = 0.0
    r = None
    while i < (x > 0).sum():
        if r is not None:
            c = r * 2
        p, r, q = a
        if x[0] > 0:
            a.mul_(2)
        i += 1
    return a, c


RAISING = [
    row_that_only_iterations_bring,
    row_of_an_earlier_iteration,
    row_written_round,
    row_written_itself,
    row_after_the_loop,
    row_that_one_path_gives_a_history,
    row_that_an_iteration_gives_a_history,
    row_that_another_name_gives_a_history,
    written_on_the_path_that_makes_it,
    row_of_one_path_is_written,
    row_of_the_iteration_before,
    slice_of_a_row_of_one_path,
    rows_of_a_branch_and_an_iteration,
    rows_in_a_list,
    rows_of_either,
    rows_of_unbind_or_split,
    no_grad_view_of_one_path,
    row_or_a_constant,
    row_of_what_a_path_made,
    row_beside_what_a_path_made,
    row_of_nested_loops,
    row_of_either_name,
    row_that_an_iteration_takes,
    last_row_of_a_loop,
]
"""Eager raises on some path."""
RIGHT = [
    rows_read_before,
    rows_under_no_grad,
    row_that_gets_none,
    rows_after_the_write,
    row_carried_round,
    rows_in_a_list_that_stay,
    row_of_a_new_tensor,
    row_of_what_was_copied,
]


def arguments(requires_grad=True):
    values = ([1.0, 2, 3], [-1.0, -2, -3], [-1.0, -2, 3], [-1.0, 2, 2], [1.0, -2, 3], [1.0, 2, -2], [0.1, 0.2, 0.3])
    return [(torch.tensor(value, requires_grad=requires_grad),) for value in values]


@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_raises_what_eager_raises(f):
    with pytest.raises(RuntimeError):
        for args in arguments():
            f(*args)
    check(f, *arguments())


@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_paths_that_eager_runs(f):
    check(f, *arguments())


@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_nothing_is_refused_without_gradients(f):
    check(f, *arguments(requires_grad=False))


def _unbind_in_messages():
    """What this PyTorch calls the node of ``unbind``: ``Unbind``, or ``UnbindBackward0`` before 2.13."""
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2, requires_grad=True).mul(1).unbind()[0].mul_(2)
    return str(caught.value).removeprefix("Output 0 of ").split()[0]


def test_the_last_row_of_a_tensor_of_any_length():
    static = dy2static.to_static(row_after_the_loop, input_spec=[dy2static.InputSpec([None], torch.float32)])
    for args in arguments():
        with pytest.raises(RuntimeError, match=f"of {_unbind_in_messages()} is a view and its base"):
            static(*args)
    check(row_after_the_loop, *arguments(requires_grad=False), static=static)


ROWS = (row_written_round, row_written_itself, rows_read_before, rows_under_no_grad)


@pytest.mark.parametrize("f", ROWS, ids=lambda f: f.__name__)
def test_rows_of_a_tensor_of_any_length(f):
    spec = [dy2static.InputSpec([None], torch.float32)]
    static = dy2static.to_static(f, input_spec=spec)
    check(f, *arguments(), (torch.ones(5, requires_grad=True),), static=static)
    check(f, *arguments(requires_grad=False), static=dy2static.to_static(f, input_spec=spec))
