"""Lists and deques of a user's class whose length a tensor decides, and whose class says what the items are."""

from __future__ import annotations

from collections import deque

import pytest
import torch

from dy2static.errors import TraceError
from tests.oracle import check


class Tenfold(list):
    def __iter__(self):
        return iter([value * 10 for value in list.__iter__(self)])


class Yielding(list):
    def __iter__(self):
        for value in list.__iter__(self):
            yield value * 10


class Fixed(deque):
    def __iter__(self):
        return iter([1, 2])


class Plain(list):
    pass


USES = {
    "list": list, "tuple": tuple, "sum": sum, "loop": lambda items: [value for value in items], "sorted": sorted,
    "star": lambda items: [*items], "call": lambda items: (lambda *given: len(given))(*items), "any": any, "max": max,
    "zip": lambda items: list(zip(items, [1, 2, 3])), "enumerate": lambda items: list(enumerate(items)),
    "rest": lambda items: (lambda first, *rest: (first, len(rest)))(*items), "deque": deque, "length": len,
    "reversed": lambda items: list(reversed(items)), "contains": lambda items: 10.0 in items, "truth": bool,
    "map": lambda items: list(map(lambda value: value + 1, items)), "again": lambda items: list(Plain(items)),
    "not": lambda items: not items, "item": lambda items: items[0], "last": lambda items: items[-1],
    "popped": lambda items: (items.pop(), len(items)), "or": lambda items: 1 if items else 2,
}  # fmt: skip


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("cls", [Tenfold, Yielding, Fixed, Plain])
def test_items(cls, use):
    def f(x):
        items = cls([1.0])
        if x.sum() > 0:
            items.append(2.0)
        return use(items)

    try:
        check(f, (torch.ones(3),), (-torch.ones(3),))
    except TraceError as error:
        assert error.code in ("D2S210", "D2S253", "D2S261", "D2S266")
        assert cls is not Plain or use is max
