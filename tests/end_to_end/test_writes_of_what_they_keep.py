"""In-place operators that overwrite what autograd keeps for them (``x.mul_(x)``): backward raises, on the paths on
which something needed a gradient."""

from __future__ import annotations

import pytest
import torch

from runtime.autodiff import versions
from tests.oracle import check

WRITES = {
    "mul": lambda p: p.mul_(p),
    "div": lambda p: p.div_(p),
    "pow": lambda p: p.pow_(p),
    "addcmul": lambda p: p.addcmul_(p, p),
    "addcdiv": lambda p: p.addcdiv_(p, p),
    "hypot": lambda p: p.hypot_(p),
    "atan2": lambda p: p.atan2_(p),
    "xlogy": lambda p: p.xlogy_(p),
    "lerp": lambda p: p.lerp_(p * 1, p),
    "a view": lambda p: p[:2].mul_(p[:2]),
    "by an operator": lambda p: torch.mul(p, p, out=p),
}
"""Some of these keep nothing that they write (``lerp``), or write where gradients cannot be recorded (``out=``)."""


def branch(write, x, y):
    if y.sum() > 0:
        p = torch.ones(3)
    else:
        p = x * 2
    write(p)
    p[1:] += x[:2]
    return p * 1


def branch_after(write, x, y):
    p, q = x * 2, torch.ones(3)
    if y.sum() > 0:
        p, q = q, p
    write(p)
    p.add_(q)
    return p * 1, q * 1


def loop(write, x, y):
    p = torch.ones(3)
    for row in y:
        write(p)
        p = p + x if row > 0 else p * 0.5
    return p


def on_a_path(write, x, y):
    p = x * 2 if y[0] > 0 else torch.ones(3)
    if y[1] > 0:
        write(p)
    return p * x


PROGRAMS = [branch, branch_after, loop, on_a_path]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", WRITES)
def test_where_only_some_paths_need_a_gradient(kind, program):
    write = WRITES[kind]

    def f(x, y):
        return program(write, x, y)

    x = torch.tensor([0.5, 1.5, 2.0], requires_grad=True)
    calls = [(x, torch.tensor(signs)) for signs in ([1.0, 1.0], [-1.0, -1.0], [1.0, -1.5], [-1.5, 1.0])]
    check(f, *calls, paths=("program",), none_is_zero=True, tolerance=1e-6)


def written_through_detached(x, y):
    """An overlap of what is written and read is tried out; that is no write, nor one of the view that is made there."""
    p, q, r = x * 0.5, y * 2, torch.zeros(3)
    for _ in range(int((x > 0).sum())):
        r[::2] += p[::2]
        with torch.no_grad():
            p = r.view(3)
        q, r = r, q
        for _ in range(int((q > 0).sum())):
            t = p
            if p.sum() > 0:
                t = t.detach()
            t += p
            p = t
            q[[0, 2]] = 0.5
    return q * 1


def tried_out(x, y):
    p, q, r = x * 0.5, y * 2, torch.zeros(3)
    if y.sum() > 0:
        r, q = q, r
    r, p = p, r
    p = p * p
    p[1:].sub_(r[:2])
    r[1:].mul_(q[:2])
    return p * 1, q * 1, r * 1


@pytest.mark.parametrize("f", [written_through_detached, tried_out], ids=lambda f: f.__name__)
def test_memory_that_is_read_and_written_on_some_paths(f):
    calls = [
        (torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True))
        for x in ([-0.13, 0.72, 0.11], [0.35, -0.26, 1.13], [-2.8, -1.5, -0.6], [0.3, 0.2, 0.1])
        for y in ([0.28, -0.68, 0.08], [-0.4, -1.1, -0.5], [0.1, 0.3, 0.9])
    ]
    check(f, *calls, paths=("program",), none_is_zero=True, tolerance=1e-6)


def written_through_an_alias(x, y):
    p, q, r = x * 0.5, y * 2, torch.zeros(3)
    n = 0
    while n < 2 and p.sum() < 1.5:
        n = n + 1
        q = p.detach()
        if y[0] < y[1]:
            break
        else:
            r, q = q, r
    q += p
    p.mul_(q)
    return p * 1, q * 1, r * 1


def data_through_an_alias(x, y):
    p, q = x * 0.5, y * 2
    if y.sum() > 0:
        q = p.detach()
    z = p * q
    q.data.mul_(2)
    return z, p * 1, q * 1


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("f", [written_through_an_alias, data_through_an_alias, tried_out], ids=lambda f: f.__name__)
def test_memory_that_is_written_under_torchs_autograd(f, few, monkeypatch):
    """Programs of which too many memories may be one get their gradient from torch's autograd, which counts as well."""
    if few:
        monkeypatch.setattr(versions, "_FLAGS", 0)
    calls = [
        (torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True))
        for x in ([-0.13, 0.72, 0.11], [0.35, -0.26, 1.13], [-2.8, -1.5, -0.6])
        for y in ([0.28, -0.68, 0.08], [-0.4, -1.1, -0.5], [0.1, 0.3, 0.9])
    ]
    check(f, *calls, paths=("program",), none_is_zero=True, tolerance=1e-6)
