"""``:=`` in comprehensions and in tests, where tensors decide: the name is bound in the function around."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check


def walrus_comp(x):
    return [v for i in range(4) if (v := x * i).sum() > 0]


def walrus_after(x):
    l = [v for i in range(4) if (v := x * i).sum() > 0]
    return l, v


def walrus_any(x):
    if any((hit := t) > 1 for t in x):
        return hit * 2
    return x.sum()


def walrus_total(x):
    total = 0
    out = [total := total + t for t in x]
    return out, total


def walrus_dict(x):
    return {i: (w := x[i] * 2) + w for i in range(3) if x[i] > 0}, x


def walrus_nested(x):
    g = [[last := a * b for a in x if a > 0] for b in x]
    return g, last if len(g[0]) else None


def walrus_grown(x):
    l = [v for v in x.tolist() if v > 0]
    return [y for v in l if (y := v * 2) > 3], x


def walrus_param(x, n=1):
    r = [n := n + 1 for t in x if t > 0]
    return r, n


def walrus_set(x):
    s = {(k := i % 2) for i in range(3)}
    return len(s), k, x


def walrus_last(x):
    first = None
    if [first := t for t in x if t > 1]:
        return first
    return x.sum()


def nl_walrus(x):
    v = None
    def g(i):
        nonlocal v
        if (v := x * i).sum() > 0:
            return v
        return x
    return g(2), v


def nl_walrus2(x):
    v = None
    out = []
    def g(i):
        nonlocal v
        if (v := x * i).sum() > 0:
            out.append(v)
    g(2)
    g(-1)
    return out, v


def two_of_them(x):
    n = int((x > 0).sum())
    return [y := v for v in range(n)], [last := i for i in range(3)], last


def one_in_another(x):
    n = int((x > 0).sum())
    return [[a := v for v in range(n)] for w in range(2) if (b := w) >= 0], {c := k for k in range(3)}, b, c


def two_on_a_tensor(x):
    return [y := x * i for i in range(2)], {i: (z := x + i) for i in range(2)}, y + z


PROGRAMS = [
    two_of_them, one_in_another, two_on_a_tensor,
    walrus_comp, walrus_after, walrus_any, walrus_total, walrus_dict, walrus_nested,
    walrus_grown, walrus_param, walrus_set, walrus_last, nl_walrus,
    nl_walrus2,
]  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_equal_eager(f, grad):
    calls = [(torch.tensor(values, requires_grad=grad),)
             for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [3.0, -1.0, 0.5], [0.0, 0.0, 0.0])]
    check(f, *calls, paths=("program",))
