"""Objects that are the very ones inside of values that are compared by content: their places, and only those."""

from __future__ import annotations

import types
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pytest

from runtime.tracer.ambient.pinned import pins


class Pair(NamedTuple):
    first: Any
    second: Any


class Other(list):  # type: ignore[type-arg]
    """A class that says other items than it holds."""

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class Item:
    """Something that can be a key."""


def objects(*items: Any) -> Any:
    made = numpy.empty(len(items), dtype=object)
    made[:] = items
    return made


HOLDING: dict[str, Callable[[Any], Any]] = {
    "a list": lambda item: [0, item], "a tuple": lambda item: (0, item, 1), "a deque": lambda item: deque([0, item]),
    "a named tuple": lambda item: Pair(0, item), "a dict": lambda item: {"k": item, "l": 0},
    "an ordered dict": lambda item: OrderedDict(k=item), "a default dict": lambda item: defaultdict(list, k=item),
    "a proxy": lambda item: types.MappingProxyType({"k": item}), "an array": lambda item: objects(0, item),
    "a slice": lambda item: slice(0, item), "nested": lambda item: [({"k": deque([[item]])},)],
    "in several places": lambda item: [item, (item,), {"k": item}],
    "a key": lambda item: {item: 0}, "a set": lambda item: {0, item}, "a frozen set": lambda item: frozenset([item]),
    "in a key": lambda item: {(0, item): 1}, "in a set": lambda item: {(item,)},
}  # fmt: skip


@pytest.mark.parametrize("kind", HOLDING)
def test_the_very_object_in_its_place(kind: str) -> None:
    make, item, other = HOLDING[kind], Item(), Item()
    test = pins(make(item), {id(item): item})
    if kind == "in a set":
        assert test is None, "which item is which, nobody can tell"
        return
    assert test is not None and test(make(item))
    assert not test(make(other))


@pytest.mark.parametrize("kind", HOLDING)
def test_where_none_is_there_is_no_test(kind: str) -> None:
    item, other = Item(), Item()
    assert pins(HOLDING[kind](item), {id(other): other}) is None and pins(HOLDING[kind](item), {}) is None


@pytest.mark.parametrize("kind", HOLDING)
def test_a_container_that_is_pinned_itself(kind: str) -> None:
    value = HOLDING[kind](Item())
    test = pins(value, {id(value): value})
    assert test is not None and test(value)
    item = Item()
    assert not test(HOLDING[kind](item))
    outer = pins([value], {id(value): value})
    assert outer is not None and outer([value]) and not outer([HOLDING[kind](item)])


def test_a_pinned_container_with_a_pinned_item() -> None:
    item = Item()
    value = [item]
    test = pins(value, {id(item): item, id(value): value})
    assert test is not None and test(value) and not test([item])
    value[0] = Item()
    assert not test(value)


def test_places_that_are_not_pinned_do_not_matter() -> None:
    item = Item()
    test = pins([1, item, [2]], {id(item): item})
    assert test is not None and test([None, item, None]) and not test([item, None, None])


@pytest.mark.parametrize("value", [3, "a", None, Item(), len, [], (), {}, set(), bytearray(b"a"), numpy.ones(2)])
def test_values_without_items(value: Any) -> None:
    assert pins(value, {}) is None
    test = pins(value, {id(value): value})
    assert test is not None and test(value) and not test([value])


def test_arrays_and_buffers_have_the_very_memory() -> None:
    base, buffer = numpy.ones(4), bytearray(b"abcd")
    view, shown = base[1:], memoryview(buffer)
    test = pins([view], {id(base): base})
    assert test is not None and test([base[1:]]) and test([base[:2]]) and not test([numpy.ones(3)])
    data = pins(shown, {id(buffer): buffer})
    assert data is not None and data(memoryview(buffer)) and not data(memoryview(bytearray(b"abcd")))
    assert pins(shown, {}) is None and pins(base, {id(buffer): buffer}) is None


def test_a_view_of_objects() -> None:
    item = Item()
    base = objects(item, 0)
    test = pins(base[:1], {id(item): item, id(base): base})
    assert test is not None and test(base[:1]) and not test(objects(item)) and not test(base[1:])


def test_what_a_class_says_of_its_items_is_not_asked() -> None:
    item = Item()
    value, alike = Other([item]), [item]
    test = pins(value, {id(item): item})
    assert test is not None and test(alike) and not test([Item()])


def test_a_container_in_itself() -> None:
    item = Item()
    value: list[Any] = [item]
    value.append(value)
    test = pins(value, {id(item): item})
    assert test is not None and test([item, None]) and not test([Item(), value])


def test_big_containers_are_compared_by_identity() -> None:
    item = Item()
    for size, found in ((4095, True), (4096, False)):
        for value in ([0] * size + [item], {**dict.fromkeys(range(size)), "k": item}, {*range(size), item},
                      deque([0] * size + [item]), objects(*range(size), item)):  # fmt: skip
            assert (pins(value, {id(item): item}) is not None) == found


def test_nothing_is_followed_for_ever() -> None:
    item = Item()
    value: Any = item
    for depth in range(40):
        value = [value]
        assert (pins(value, {id(item): item}) is not None) == (depth < 32)


def test_a_proxy_of_no_dict() -> None:
    """It may be of anything that can be indexed."""
    item = Item()
    value = types.MappingProxyType(UserDict(k=item))
    test = pins(value, {id(item): item})
    assert test is not None and test(types.MappingProxyType({"k": item}))
