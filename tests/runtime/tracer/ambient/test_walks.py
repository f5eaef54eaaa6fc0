"""Walks enter each object once, level by level, and ask containers for what they store alone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runtime.tracer.ambient.walks import walk


def parts(value: Any) -> Any:
    """The items of a list or tuple, the values of a dict."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()


def leaves(values: Any, deepest: int = 9) -> list[Any]:
    return [one for one in walk(values, parts, deepest) if not isinstance(one, (list, tuple, dict))]


def test_level_by_level() -> None:
    assert list(walk([1, [2, [3]], (4,)], parts, 9)) == [1, [2, [3]], (4,), 2, [3], 4, 3]
    assert list(walk([], parts, 9)) == [] == leaves([[], ((),), {}])
    assert leaves([{"a": 1, "b": {"c": 2}}]) == [1, 2]


@pytest.mark.parametrize("deepest, found", [(0, []), (1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (99, [1, 2, 3])])
def test_no_deeper_than_is_said(deepest: int, found: list[int]) -> None:
    assert leaves([[1, [2, [3]]]], deepest) == found


def test_each_object_is_entered_once() -> None:
    inner = [1]
    circle: list[Any] = [inner, inner]
    circle += [circle, (circle,)]
    assert leaves([circle], 50) == [1]
    assert sum(one is inner for one in walk([circle, inner], parts, 50)) == 3, "it is met more often"
    ring: dict[str, Any] = {}
    ring["k"] = {"l": ring}
    assert len(list(walk([ring], parts, 50))) == 3


def test_what_had_no_parts_is_asked_again() -> None:
    """It may have some by then."""
    found: dict[int, list[Any]] = {}
    value = object()
    assert list(walk([value, [value]], lambda one: parts(one) or found.get(id(one), ()), 9)) == [value, [value], value]
    asked = iter([(), (5,)])
    again = walk([value, [value]], lambda one: next(asked) if one is value else parts(one), 2)
    assert list(again) == [value, [value], value, 5]


class Odd:
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("iter")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("item")


class OddList(Odd, list):  # type: ignore[type-arg]
    pass


class OddTuple(Odd, tuple):  # type: ignore[type-arg]
    pass


class Equal(list):  # type: ignore[type-arg]
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("equal")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("make", [OddList, OddTuple, Equal], ids=lambda cls: cls.__name__)
def test_what_a_users_class_says_is_not_asked(make: Callable[..., Any]) -> None:
    assert leaves([make([1, make([2])])]) == [1, 2]


def test_a_class_that_says_other_items() -> None:
    class Other(list):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[Any]:
            return iter(["other"])

    assert leaves([Other([1])]) == [1]


def test_parts_may_be_made_for_the_walk() -> None:
    """What was made lives as long as the walk: another one could come to lie in its place."""
    class Made:
        count = 0

        def __init__(self, depth: int) -> None:
            Made.count += 1
            self.depth = depth

        def __del__(self) -> None:
            Made.count -= 1

    going = walk([Made(0)], lambda one: (Made(one.depth + 1) for _ in range(3)), 5)
    seen = 0
    for one in going:
        seen += 1
        assert Made.count >= seen
    del one, going
    gc.collect()
    assert seen == sum(3**level for level in range(6)) and Made.count == 0


def test_the_walk_may_be_left() -> None:
    going = walk([[1], [2]], parts, 9)
    assert next(going) == [1]
    going.close()  # type: ignore[attr-defined]
