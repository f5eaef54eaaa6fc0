"""What values show of what they hold: at once, at any depth, and in circles."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import ChainMap, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy
import pytest

from runtime.tracer.values.inside import inside, leads_to, shows_containers

ONE, OTHER = object(), object()


class Pair(NamedTuple):
    first: Any
    second: Any


class Odd(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("what is stored is asked, not the class")


class OddDict(dict[Any, Any]):
    def values(self) -> Any:
        raise AssertionError("what is stored is asked, not the class")


class NoMapping:
    """Something that a mapping proxy is made of and that has no values."""

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def keys(self) -> list[Any]:
        return []


@dataclasses.dataclass
class Record:
    value: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


def function(*args: Any, **kwargs: Any) -> None:
    pass


def array_of(*items: Any) -> Any:
    made = numpy.empty(len(items), dtype=object)
    made[:] = items
    return made


HELD: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "a list": (lambda: [ONE, 1], [ONE, 1]),
    "a list of a user's class": (lambda: Odd([ONE]), [ONE]),
    "a tuple": (lambda: (ONE, OTHER), [ONE, OTHER]),
    "a named tuple": (lambda: Pair(ONE, 2), [ONE, 2]),
    "a dict": (lambda: {"a": ONE, OTHER: 2}, [ONE, 2]),
    "an OrderedDict": (lambda: OrderedDict(a=ONE), [ONE]),
    "a dict of a user's class": (lambda: OddDict(a=ONE), [ONE]),
    "a set": (lambda: {ONE}, [ONE]),
    "a frozenset": (lambda: frozenset({ONE}), [ONE]),
    "a deque": (lambda: deque([ONE, OTHER]), [ONE, OTHER]),
    "a mapping proxy": (lambda: types.MappingProxyType({"a": ONE}), [ONE]),
    "a mapping proxy of no dict": (lambda: types.MappingProxyType(NoMapping()), []),  # type: ignore[arg-type]
    "an array of objects": (lambda: array_of(ONE, OTHER), [ONE, OTHER]),
    "an array of numbers": (lambda: numpy.ones(2), []),
    "a partial": (lambda: functools.partial(function, ONE, a=OTHER), [function, ONE, OTHER]),
    "nothing": (lambda: [], []),
    "a text": (lambda: "abc", []),
    "a record": (lambda: Record(ONE), []),
    "a function": (lambda: function, []),
    "a built-in function": (lambda: len, []),
    "a method of a text": (lambda: "a".upper, []),
}


@pytest.mark.parametrize("kind", HELD)
def test_what_is_directly_inside(kind: str) -> None:
    make, wanted = HELD[kind]
    found = list(inside(make()))
    assert len(found) == len(wanted) and all(a is b for a, b in zip(found, wanted))


@pytest.mark.parametrize("container", [[ONE], {"a": ONE}, {ONE}, deque([ONE])])
def test_a_method_of_a_container_shows_the_container(container: Any) -> None:
    (found,) = inside(container.copy)
    assert found is container and leads_to(container.copy, {id(ONE)})


def test_what_a_value_leads_to() -> None:
    assert leads_to(ONE, {id(ONE)}) and not leads_to(ONE, {id(OTHER)}) and not leads_to(ONE, frozenset())
    value: Any = ONE
    for wrap in (lambda one: [0, one], lambda one: {"a": one}, lambda one: (one, 1), lambda one: deque([one]),
                 lambda one: functools.partial(function, a=one), lambda one: array_of(one)) * 10:
        value = wrap(value)
        assert leads_to(value, {id(ONE)}) and not leads_to(value, {id(OTHER)})
    assert not leads_to(Record(ONE), {id(ONE)})


def test_circles_end() -> None:
    itself: list[Any] = [1]
    itself.append({"a": itself})
    assert not leads_to(itself, {id(ONE)})
    itself.append((ONE,))
    assert leads_to(itself, {id(ONE)})
    circle: Any = [None]
    circle[0] = (circle,)
    assert shows_containers(circle)


def test_what_is_taken_apart_is_shown() -> None:
    for value in ([], {}, set(), OrderedDict(), Odd(), types.MappingProxyType({}), ChainMap(), Record(1), Frozen(1)):
        assert shows_containers(value) and shows_containers((1, ("a", value)))
        assert shows_containers(functools.partial(function, value)) and shows_containers(deque([value]))
    itself: Any = deque()
    itself.append(itself)
    for other in ((), (1, (2,)), "a", 1, None, Pair(1, 2), frozenset({1}), deque(), Record, function, numpy.ones(2),
                  ONE, itself):
        assert not shows_containers(other)
