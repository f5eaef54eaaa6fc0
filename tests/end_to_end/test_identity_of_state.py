"""A mutable object from before the call that leaves it is the very one that is there, however often it was replaced.

Each case binds an equal but new object before each call; what the converted function returns, writes or stores is
compared by identity.
"""

from __future__ import annotations

import array
import collections
import contextvars
import types
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import dy2static

X = torch.ones(2)
BOUND: Any = None
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")
MODULE = types.ModuleType("holds")
SPACE: dict[str, Any] = {}
OUT: dict[str, Any] = {}


def _objects(one):
    held = np.empty(2, dtype=object)
    held[0] = one
    return held


class Box:
    """An object with an attribute."""


BOX = Box()


class Many(list):
    """A container of a user's class."""


class Named(dict):
    """A mapping of a user's class."""


INNER = {
    "list": lambda: [1], "empty list": list, "dict": lambda: {"a": 1}, "set": lambda: {1, 2},
    "deque": lambda: collections.deque([1]), "bytearray": lambda: bytearray(b"ab"),
    "array": lambda: array.array("i", [1, 2]), "numpy": lambda: np.array([1.0, 2.0]),
    "objects": lambda: np.array([None, "a"], dtype=object), "own list": lambda: Many([1]),
    "own dict": lambda: Named(a=1), "default": lambda: collections.defaultdict(list, a=1),
    "ordered": lambda: collections.OrderedDict(a=1), "counter": lambda: collections.Counter("a"),
    "namespace": lambda: types.SimpleNamespace(a=1), "memoryview": lambda: memoryview(b"ab"),
    "proxy": lambda: types.MappingProxyType({"a": 1}),
}  # fmt: skip
AROUND = {
    "itself": (lambda one: one, lambda held: held),
    "list": (lambda one: [0, one], lambda held: held[1]),
    "dict": (lambda one: {"k": one}, lambda held: held["k"]),
    "tuple": (lambda one: (one, 1), lambda held: held[0]),
    "deque": (lambda one: collections.deque([one]), lambda held: held[0]),
    "dict in list": (lambda one: [{"k": one}], lambda held: held[0]["k"]),
    "own": (lambda one: Many([one]), lambda held: held[0]),
    "proxy": (lambda one: types.MappingProxyType({"k": one}), lambda held: held["k"]),
    "array of objects": (lambda one: _objects(one), lambda held: held[0]),
}


def bind_global(held):
    global BOUND
    BOUND = held


def from_global(x):
    return BOUND


def from_attribute(x):
    return BOX.held


def from_module(x):
    return MODULE.held


def from_dict(x):
    return SPACE["held"]


def from_variable(x):
    return VARIABLE.get()


def _cell():
    held = None

    def bind(new):
        nonlocal held
        held = new

    def read(x):
        return held

    return bind, read


def with_default(x, held=None):
    return held


def bind_default(held):
    with_default.__defaults__ = (held,)


def read_default(x):
    return with_default(x)


PLACES = {
    "global": (bind_global, from_global),
    "attribute": (lambda held: setattr(BOX, "held", held), from_attribute),
    "module": (lambda held: setattr(MODULE, "held", held), from_module),
    "dict": (lambda held: SPACE.__setitem__("held", held), from_dict),
    "variable": (VARIABLE.set, from_variable),
    "cell": _cell(),
    "default": (bind_default, read_default),
}


def _returned(read, take):
    return lambda x: (x * 2, read(x))


def _part(read, take):
    return lambda x: (x * 2, take(read(x)))


def _stored(read, take):
    def store(x):
        OUT["kept"] = take(read(x))
        return x * 2

    return store


def _in_new(read, take):
    return lambda x: {"new": [take(read(x)), x]}


def _on_a_path(read, take):
    def choose(x):
        held = take(read(x)) if x.sum() > 0 else None
        return x, held

    return choose


USES = {"returned": _returned, "part": _part, "stored": _stored, "in new": _in_new, "on a path": _on_a_path}


def _run(place: str, use: str, around: str, inner: str) -> None:
    bind, read = PLACES[place]
    wrap, take = AROUND[around]
    converted = dy2static.to_static(USES[use](read, take))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            one = INNER[inner]()
            held = wrap(one)
            bind(held)
            result = converted(X)
            if use == "returned":
                assert (result[1] is held or isinstance(held, tuple)) and take(result[1]) is one
            elif use == "part" or use == "on a path":
                assert result[1] is one
            elif use == "in new":
                assert result["new"][0] is one
            else:
                assert OUT.pop("kept") is one


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("use", USES)
def test_by_kind(use, inner):
    _run("global", use, "list", inner)


@pytest.mark.parametrize("inner", INNER)
def test_read_directly(inner):
    _run("global", "returned", "itself", inner)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("use", USES)
def test_by_what_is_around(use, around):
    _run("global", use, around, "list")
    _run("global", use, around, "bytearray")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("use", USES)
def test_by_place(place, use):
    _run(place, use, "dict in list", "list")
    _run(place, use, "itself", "dict")


def _calls(function, *rounds):
    """What a converted function gives for a global that is bound anew before each call, and what is in it then."""
    converted = dy2static.to_static(function)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for held in rounds:
            bind_global(held)
            found.append((converted(X), BOUND))
    return found


def test_compared_with_is():
    one, two = [1], [1]
    for function in (lambda x: BOUND[0] is BOUND[1], lambda x: id(BOUND[0]) == id(BOUND[1])):
        found = _calls(function, [one, one], [one, two], [two, two], [two, one])
        assert [result for result, _ in found] == [True, False, True, False]


def test_an_inner_list_is_written():
    def write(x):
        BOUND["k"][0].append(x.shape[0])
        return x * 2

    def write_on_a_path(x):
        if x.sum() > 0:
            BOUND["k"][0].append(2)
        return x * 2

    for function in (write, write_on_a_path, _write_by_others):
        found = _calls(function, *({"k": [[1]]} for _ in range(4)))
        assert all(held == {"k": [[1, 2]]} for _, held in found)


@dy2static.not_to_static
def _push(items):
    items.append(2)


def _write_by_others(x):
    _push(BOUND["k"][0])
    return x * 2


@pytest.mark.slow
def test_what_holds_it_is_made_inside():
    def closure(x):
        held = BOUND[0]
        return lambda: held

    def method(x):
        return BOUND[0].append

    for _ in range(2):
        for result, held in _calls(closure, *([[1]] for _ in range(3))):
            assert result() is held[0]
        for result, held in _calls(method, *([[1]] for _ in range(3))):
            assert result.__self__ is held[0]


def test_an_attribute_of_an_equal_list_is_another_one():
    rounds = []
    for number in range(3):
        rounds.append(Many([1]))
        rounds[-1].tag = number
    assert [result for result, _ in _calls(lambda x: BOUND.tag, *rounds)] == [0, 1, 2]
    del rounds[1].tag
    assert [result for result, _ in _calls(lambda x: hasattr(BOUND, "tag"), *rounds)] == [True, False, True]


def test_what_is_only_read_may_be_replaced():
    converted = dy2static.to_static(lambda x: x * BOUND[0]["a"])
    for _ in range(3):
        bind_global([{"a": 2}])
        assert torch.equal(converted(X), X * 2)
    assert len(converted.programs) == 1
