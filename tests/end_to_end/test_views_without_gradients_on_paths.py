"""A view that was made without gradients on some path, or in some iteration, only, and whose base is then written.

PyTorch cannot give such a view the history that its base has now: whoever reads it gets a RuntimeError. Every way to
come by such a view, every way to write its base and every use, against eager.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from tests.oracle import check


def on_a_path(p, b, y):
    with torch.no_grad():
        q = p.view(3) if y.sum() > 0 else b
    return q


def on_a_path_or_its_base(p, b, y):
    with torch.no_grad():
        q = p.view(3)
    return q if y.sum() > 0 else p


def joined_twice(p, b, y):
    with torch.no_grad():
        q = p.view(3) if y.sum() > 0 else y * 2
    return q if y[0] > -0.5 else b


def of_a_loop(p, b, y):
    q = b
    for i in range(2):
        if y[i] > 0:
            with torch.no_grad():
                q = p[:]
    return q


def of_a_view(p, b, y):
    v = p.view(3)
    with torch.no_grad():
        q = v[:] if y.sum() > 0 else b
    return q


def alone(p, b, y):
    with torch.no_grad():
        return p.view(3)


def copied(p, b, y):
    p.copy_(b)


def added(p, b, y):
    p.add_(b)


def partly(p, b, y):
    p[1:] = b[1:]


def without_gradients(p, b, y):
    with torch.no_grad():
        p.copy_(b)


def in_a_branch(p, b, y):
    if y[1] > 0:
        p.mul_(b)


def in_a_loop(p, b, y):
    i = torch.tensor(0)
    while i < 3:
        if y[i] > 0:
            p.add_(b * y[i])
        i = i + 1


def through_its_view(p, b, y):
    p.view(3).mul_(b)


def by_a_constant(p, b, y):
    p.mul_(2)


def multiplied(q, p, b, y):
    return q * 1, p * 1


def unread(q, p, b, y):
    return p * 1, b


def read_on_a_path(q, p, b, y):
    return q * 2 if y[2] > 0 else p * 2


def read_in_a_loop(q, p, b, y):
    total = b * 0
    for i in range(2):
        if y[i] > 0:
            total = total + q
    return total


def read_without_gradients(q, p, b, y):
    with torch.no_grad():
        return q * 2


def asked(q, p, b, y):
    return p * 1 if q.requires_grad else p * 2


MADE = [on_a_path, on_a_path_or_its_base, joined_twice, of_a_loop, of_a_view, alone]
WRITTEN = [copied, added, partly, without_gradients, in_a_branch, in_a_loop, through_its_view, by_a_constant]
USED = [multiplied, unread, read_on_a_path, read_in_a_loop, read_without_gradients, asked]


@pytest.mark.parametrize("fresh", [True, False], ids=["a copy", "with a history"])
@pytest.mark.parametrize(
    ("made", "written", "used"), [*itertools.product(MADE, WRITTEN, USED)], ids=lambda one: one.__name__)  # fmt: skip
def test_as_eager(made, written, used, fresh):
    def f(x, y):
        p = x * 0.5
        b = x * y
        if fresh:
            with torch.no_grad():
                p = p.clone()
        q = made(p, b, y)
        written(p, b, y)
        return used(q, p, b, y)

    ys = [[0.1, 0.2, 0.3], [-1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [2.0, -1.0, -0.5]]
    for needs in (True, False):
        calls = [(torch.tensor([1.0, 2.0, -3.0], requires_grad=needs), torch.tensor(y)) for y in ys]
        check(f, *calls, paths=("program",), none_is_zero=True)


def a_view_of_what_was_detached(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Writing ``q`` gives what was detached from it no history, and so takes none behind the back of its views."""
    p, q = x * 0.5, y * 2
    with torch.no_grad():
        r = q.detach()
        for _ in range(int((p > 0).sum())):
            p = r.view(3)
    r[0] = p[2]
    q[::2] = 0.5
    return p * 1, q * 1, r * 1


def a_view_or_a_view_of_what_was_detached(x: torch.Tensor, y: torch.Tensor) -> Any:
    q = y * 2
    with torch.no_grad():
        v = q.view(3)
        if x.sum() > 0:
            v = q.detach().view(3)
    q[::2] = 0.5
    return v * 1, q * 1


def a_view_that_was_detached_on_a_path_again(x: torch.Tensor, y: torch.Tensor) -> Any:
    """To autograd what was detached is no view, whatever it is detached from."""
    q = x * 0.5
    with torch.no_grad():
        p = q[:].detach()
    u = y * 2
    if u.sum() > 0:
        p = p.detach()
    p += u
    return p * 1


def a_view_of_what_was_detached_or_that(x: torch.Tensor, y: torch.Tensor) -> Any:
    r = (x * 0.5).detach()
    with torch.no_grad():
        v = r.view(3)
    if y.sum() > 0:
        v = v.detach()
    v += y * 2
    return v * 1


def a_view_or_what_was_detached_from_it(x: torch.Tensor, y: torch.Tensor) -> Any:
    q = x * 0.5
    with torch.no_grad():
        v = q.view(3)
        if y.sum() > 0:
            v = v.detach()
        v = v[:]
    q += 1
    return v * 1, q * 1


def one_of_several_or_what_was_detached_from_it(x: torch.Tensor, y: torch.Tensor) -> Any:
    a = (x * 0.5).split(2)[0]
    d = a.detach()
    if y.sum() > 0:
        d = a
    d += 1
    return d * 1


@pytest.mark.parametrize("function", [
    a_view_of_what_was_detached, a_view_or_a_view_of_what_was_detached, a_view_that_was_detached_on_a_path_again,
    a_view_of_what_was_detached_or_that, a_view_or_what_was_detached_from_it,
    one_of_several_or_what_was_detached_from_it,
], ids=lambda function: function.__name__)  # fmt: skip
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_was_detached(function: Any, sign: float) -> None:
    for other in (1.0, -1.0):
        check(function, (torch.full((3,), sign, requires_grad=True), torch.full((3,), other, requires_grad=True)))
