"""Sets that are asked about the items of a generator which decides on tensors: no item is asked for once the answer is
known.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved

CALLS = [(torch.tensor(one),) for one in ([1.0, 2.0], [-2.0, 3.0], [2.0, 1.0], [7.0, 0.5])]


def numbers(x):
    for v in x:
        print("asked")
        if v > 1:
            yield int(v)
        else:
            yield 7


def as_long_as(x):
    yield 1
    if x.sum() > 2:
        yield 2
    if x.sum() > 3:
        yield 3


def flags(x):
    for v in x:
        yield bool(v > 1)


def texts(x):
    for v in x:
        yield "a" if v > 1 else f"{v:.0f}"


def kept(x):
    for v in numbers(x):
        if v > 2:
            yield v


SETS = {
    "two": {1, 2}, "empty": set(), "frozen": frozenset({2, 3, 7}), "texts": {"a", "b"}, "bool": {True},
    "all": {1, 2, 3, 7},
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("items", [numbers, as_long_as, flags, texts, kept])
@pytest.mark.sample(3)
def test_as_eager(items: Any, name: str, tmp_path) -> None:
    first, second = SETS[name], SETS["two"]

    def asked(x):
        known = {1, 2} if name == "two" else first
        return known.isdisjoint(items(x)), known.issuperset(items(x)), set.isdisjoint(second, items(x)), x

    def expressions(x):
        if not first.isdisjoint(v for v in items(x)):
            x = x * 2
        return x, first.issuperset(v for v in items(x) if v != 7)

    for function in (asked, expressions):
        check_saved(function, check(function, *CALLS), tmp_path / "f", *CALLS, paths=("program",))


def gone_on(x):
    items = numbers(x)
    return {2}.isdisjoint(items), list(items)


def both(x):
    return {2, 3}.intersection(numbers(x))


@pytest.mark.parametrize("function", [gone_on, both])
def test_refused(function):
    """Where what is left of the generator is used; ``intersection`` may leave it, too."""
    with pytest.raises(TraceError, match="D2S212|D2S266"):
        to_static(function)(*CALLS[0])
