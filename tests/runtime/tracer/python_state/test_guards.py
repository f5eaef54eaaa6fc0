"""A guard tells apart what a program can tell apart, and takes anew-made values that look the same for the same."""

from __future__ import annotations

import array
import copy
import itertools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy
import pytest
import torch

from runtime.tracer.python_state.guard_code import CheckWriter
from runtime.tracer.python_state.guards import GuardSet, is_like
from runtime.tracer.python_state.journal import Place


class Named(list[Any]):
    pass


class Keyed(dict[Any, Any]):
    pass


def _frozen(values: Any) -> Any:
    values.setflags(write=False)
    return values


LEAVES = [
    0, 1, -1, True, False, 0.0, -0.0, 1.0, float("nan"), float("inf"), 0j, complex(0.0, -0.0), "", "a", b"", b"a", None,
    torch.float32, torch.float64, torch.device("cpu"), torch.strided, range(0), range(1, 0), range(3), slice(0, 1),
    slice(False, True), slice(None), numpy.float32(0), numpy.float64(0), numpy.float32(-0.0), numpy.int64(0),
]  # fmt: skip
HOLDING = [
    lambda item: [item], lambda item: (item,), lambda item: deque([item]), lambda item: deque([item], maxlen=1),
    lambda item: deque([item], maxlen=2), lambda item: Named([item]), lambda item: {"k": item},
    lambda item: Keyed(k=item), lambda item: OrderedDict(k=item), lambda item: defaultdict(int, k=item),
    lambda item: defaultdict(float, k=item), lambda item: types.MappingProxyType({"k": item}),
    lambda item: [item, item], lambda item: {"k": item, "l": item}, lambda item: {"l": item, "k": item},
]  # fmt: skip
OTHERS = [
    {8, 0}, {0, 8}, frozenset([8, 0]), frozenset([0, 8]), {(1,)}, {(True,)}, {0.0}, {-0.0}, {1}, {True}, set(),
    Counter("ab"), Counter("ba"), {1: 0}, {True: 0}, {(1,): 0}, {(True,): 0}, bytearray(b"a"), array.array("b", [97]),
    array.array("B", [97]), memoryview(b"ab"), memoryview(b"ab")[1:], numpy.ones((2, 2)),
    numpy.asfortranarray(numpy.ones((2, 2))), numpy.ones((2, 2), numpy.float32), numpy.ones((4, 1)),
    numpy.zeros((2, 2)),
    _frozen(numpy.ones((2, 2))), numpy.array([1, "a"], dtype=object), numpy.array([True, "a"], dtype=object),
]  # fmt: skip
VALUES = [*LEAVES, *(hold(leaf) for hold in HOLDING for leaf in LEAVES[:18]), *OTHERS]


def told(value: Any) -> Any:
    """What a program can tell of a value: two that give equal ones are alike."""
    kind = type(value).__name__
    if isinstance(value, numpy.ndarray):
        return (kind, str(value.dtype), value.shape, value.strides, value.flags.writeable, told(value.ravel().tolist()))
    if isinstance(value, (bytearray, array.array, memoryview)):
        return kind, getattr(value, "typecode", ""), bytes(value)
    if isinstance(value, (list, tuple, deque, set, frozenset)):
        return kind, getattr(value, "maxlen", None), [told(item) for item in value]
    if isinstance(value, (dict, types.MappingProxyType)):
        factory = getattr(value, "default_factory", None)
        return kind, factory, [(told(key), told(item)) for key, item in value.items()]
    if isinstance(value, slice):
        return kind, told((value.start, value.stop, value.step))
    return kind, repr(value)


def anew(value: Any) -> Any:
    """The same made once more, where that can be."""
    if isinstance(value, types.MappingProxyType):
        return types.MappingProxyType({key: anew(item) for key, item in value.items()})
    if isinstance(value, memoryview):
        return memoryview(bytes(value))
    made = copy.deepcopy(value)
    if isinstance(value, numpy.ndarray):
        made.setflags(write=value.flags.writeable)
    return made


def test_values_are_told_apart_and_found_again() -> None:
    tests = [(is_like(value), told(value)) for value in VALUES]
    for (test, mine), value in itertools.product(tests, VALUES):
        assert test(value) == (told(value) == mine), (mine, value)
    for (test, mine), value in zip(tests, VALUES):
        assert test(anew(value)) == (told(anew(value)) == mine), value


class Owner:
    held: Any


def test_the_code_of_a_check_tells_the_same() -> None:
    owner = Owner()
    for value in VALUES:
        owner.held = value
        guards = GuardSet()
        guards.add("held", "owner.held", lambda: owner.held, value)
        (guard,) = guards.freeze()
        guard.where = Place("attribute", owner, "held")
        writer = CheckWriter(())
        writer.guard(guard)
        check = writer.finish()
        assert check is not None
        for other in VALUES:
            owner.held = other
            assert (check() is not None) == guard.holds() == (told(other) == told(value)), (value, other)


def test_what_is_gone_holds_no_more() -> None:
    owner = Owner()
    guards = GuardSet()
    guards.add("held", "owner.held", lambda: owner.held, 1)
    (guard,) = guards.freeze()
    assert not guard.holds()


@pytest.mark.parametrize("make", [list, set, deque, tuple, dict.fromkeys], ids=lambda make: make.__name__)
def test_long_containers_are_compared_by_identity_and_length(make: Any) -> None:
    value = make(range(5000))
    test = is_like(value)
    assert test(value) and not test(make(range(5000)))
    if hasattr(value, "pop"):
        value.popitem() if isinstance(value, dict) else value.pop()
        assert not test(value)


def test_a_container_inside_itself_is_compared_by_identity_there() -> None:
    value: list[Any] = [1]
    value.append(value)
    other: list[Any] = [1]
    other.append(other)
    assert is_like(value)(value) and not is_like(value)(other)


@pytest.mark.parametrize("number", range(len(HOLDING)))
def test_items_that_are_the_very_same_may_have_changed(number: int) -> None:
    """An object may have got another class, a list in a container other items, a container other objects."""

    class One:
        pass

    class Other:
        pass

    inner: Any = One()
    held = HOLDING[number](inner)
    test = is_like(held)
    assert test(held) and test(HOLDING[number](inner)) and not test(HOLDING[number](One()))
    inner.__class__ = Other
    assert not test(held)
    inner = [1]
    held = HOLDING[number](inner)
    test = is_like(held)
    assert test(held) and test(HOLDING[number]([1]))
    inner[0] = True
    assert not test(held)


def test_pinned_objects_stay_the_very_same() -> None:
    inner = [1]
    owner = Owner()
    owner.held = {"a": [inner], "b": (inner,)}
    guards = GuardSet()
    guards.add("held", "owner.held", lambda: owner.held, owner.held)
    guards.pin(inner)
    (guard,) = guards.freeze()
    assert guard.holds()
    owner.held = {"a": [inner], "b": (inner,)}
    assert guard.holds()
    owner.held = {"a": [[1]], "b": (inner,)}
    assert not guard.holds()
