"""Statements in the body of a class that a converted function makes: they see a list that grew as eager does, or are
refused at their line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import TraceError, to_static
from tests.oracle import check

pytestmark = pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")


def grown(x, n):
    xs = []
    i = 0
    while i < n:
        xs.append(i)
        i += 1
    return xs


def several(x, n):
    d = {"a": 1}
    if n > 1:
        d["b"] = 2
    return d


def calls(x, n):
    xs, d = grown(x, n), several(x, n)

    class Made:
        length, size = len(xs), len(d)
        items = list(d)
        got = d.get("b", 7)
        held = xs
        copied = [v for v in xs]
        order = sorted(xs)

    return Made.length, Made.size, Made.items, Made.got, Made.held is xs, Made.copied, Made.order


def operators(x, n):
    xs, d = grown(x, n), several(x, n)

    class Made:
        has = "b" in d
        lacks = "b" not in d
        same = d == {"a": 1}
        first = xs[0]
        longer = xs + [5]
        union = d | {"c": 3}
        text = f"{len(xs)} of {d['a']}"
        spread = {**d, "z": 1}
        items = [*xs, 1]
        own = first + 1
        again = len(longer)

        def method(self, k=len(xs)):
            return k

    return (Made.has, Made.lacks, Made.same, Made.first, Made.longer, Made.union, Made.text, Made.spread, Made.items,
            Made.own, Made.again, Made().method())  # fmt: skip


def plain_constructs(x, n):
    k = [1, 2]

    class Made:
        if k:
            a = 1
        else:
            a = 2
        b, c = k
        total = 0
        for one in k:
            total += one
        d = a and b or c
        e = 3 if not d else 0 < d < 9
        f = [p * q for p in k for q in k if p]
        while total > 0:
            total -= 1
        match k:
            case [g, *h]:
                pass
        k[0] = x
        __hidden = k
        i = __hidden

    return Made.a, Made.b, Made.c, Made.total, Made.d, Made.e, Made.f, Made.g, Made.h, Made.i is k, k


@pytest.mark.parametrize("function", [calls, operators, plain_constructs])
def test_equal_eager(function: Callable[..., Any]) -> None:
    check(function, *((torch.tensor([1.0, -2.0]), torch.tensor(n)) for n in (2, 1, 3)))


def truth(x, n):
    xs = grown(x, n)

    class Made:
        a = 1 if xs else 0

    return Made.a


def negated(x, n):
    d = several(x, n)

    class Made:
        a = not d

    return Made.a


def chosen(x, n):
    xs = grown(x, n)

    class Made:
        a = xs or 1

    return Made.a


def branch(x, n):
    xs = grown(x, n)

    class Made:
        if xs:
            a = 1
        else:
            a = 2

    return Made.a


def loop(x, n):
    xs = grown(x, n)

    class Made:
        a = 0
        for _ in xs:
            a += 1

    return Made.a


def comprehension(x, n):
    xs = grown(x, n)

    class Made:
        a = [1 for _ in xs]

    return Made.a


def unpacked(x, n):
    xs = grown(x, n)

    class Made:
        (a,) = xs

    return Made.a


def chain(x, n):
    d = several(x, n)

    class Made:
        a = 0 < 1 != d

    return Made.a


def stored(x, n):
    xs = grown(x, n)

    class Made:
        xs[0] = 5

    return xs, Made


def matched(x, n):
    xs = grown(x, n)

    class Made:
        match xs:
            case [a]:
                pass
            case _:
                a = 0

    return Made.a


@pytest.mark.parametrize("function", [
    truth, negated, chosen, branch, loop, comprehension, unpacked, chain, stored, matched,
])  # fmt: skip
def test_what_python_itself_would_read_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError) as caught:
        to_static(function)(torch.tensor([1.0, -2.0]), torch.tensor(2))
    assert caught.value.code in ("D2S253", "D2S254") and caught.value.location is not None
