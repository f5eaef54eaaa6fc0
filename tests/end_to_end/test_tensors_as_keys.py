"""Tensors as keys of dicts and items of sets: one tensor that a trace knows as several objects counts once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dy2static

GLOBAL, OTHER = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])


def displays(a: Any) -> Any:
    return len({GLOBAL, a, a * 1}), len({GLOBAL: 1, a: 2}), {GLOBAL: 1, (a, 2): 3}.get((GLOBAL, 2))


def identities(a: Any) -> Any:
    return GLOBAL is a, id(GLOBAL) == id(a), hash(GLOBAL) == hash(a), {id(a): 1}.get(id(GLOBAL))


def constructors(a: Any) -> Any:
    items = set([GLOBAL, a])
    return len(items), len(frozenset((GLOBAL, a))), len(dict.fromkeys([GLOBAL, a])), len(items.union([a, GLOBAL]))


def what_is_given_back(a: Any) -> Any:
    items = {a, a.float()}
    items.add(a.float())
    table = {a: 1}
    table[a.float()] = 2
    found = a.float() in items, table[a.float()], table.get(a), id(a.float()) == id(a)
    return found, len(items), {*[a, a.float()]} == items


@pytest.mark.parametrize("function", [displays, identities, constructors, what_is_given_back])
def test_as_eager_whichever_tensor_comes(function: Any) -> None:
    for order in ((OTHER, GLOBAL, OTHER), (GLOBAL, OTHER, GLOBAL)):
        static = dy2static.to_static(function)
        for x in order:
            assert static(x) == function(x)


def added(a: Any) -> Any:
    items = set()
    items.add(GLOBAL)
    items.add(a)
    return len(items)


def test_a_set_with_a_tensor_from_outside() -> None:
    static = dy2static.to_static(added)
    assert static(GLOBAL) == 1
    with pytest.raises(dy2static.Dy2StaticError, match="D2S265"):
        static(OTHER)
