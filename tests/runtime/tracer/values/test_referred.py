"""What objects refer to: asked of their classes, and of nothing that a user wrote."""

from __future__ import annotations

import contextvars
import functools
import operator
import types
import weakref
from typing import Any

import numpy
import torch

from runtime.tracer.values.referred import Readers, opaque_parts, reader_of


class Thing:
    def __init__(self, a: Any) -> None:
        self.a = a

    def method(self) -> None: ...


class Slotted:
    __slots__ = ("one", "two")


class Both(Slotted):
    pass


class Asked(Thing):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Named(Slotted):
    """A class that gives the name of the namespace another meaning."""

    __slots__ = ()
    __dict__ = {"k": "another"}  # type: ignore[assignment]


VAR: contextvars.ContextVar[Any] = contextvars.ContextVar("VAR")


def parts_of(value: Any) -> list[Any]:
    return [one for one in opaque_parts(value) if not isinstance(one, (types.FunctionType, type))]


def test_what_objects_refer_to() -> None:
    held, other = [1], [2]

    def function(a: Any = other, *, b: Any = held) -> Any:
        return held

    thing = Thing(held)
    (cell,) = function.__closure__ or ()
    assert parts_of(function) == [cell, other, held] and parts_of(cell) == [held] and parts_of(types.CellType()) == []
    assert parts_of(thing) == [held] and parts_of(thing.method) == [thing] and parts_of(held.append) == [held]
    partial = functools.partial(len, held, k=other)
    assert list(opaque_parts(partial)) == [len, held, other]
    assert parts_of(frozenset({5})) == [5] and parts_of(weakref.ref(thing)) == [thing]
    assert parts_of(types.MappingProxyType({"k": held})) == [{"k": held}]
    assert parts_of({"k": 1}.keys()) == [{"k": 1}] and held in parts_of(slice(held))
    assert (0, held) in parts_of(operator.itemgetter(0, held))
    array: Any = numpy.empty(1, dtype=object)
    array[0] = held
    assert parts_of(array) == [held] and parts_of(numpy.ones(2)) == []
    token = VAR.set(held)
    assert held in parts_of(VAR)
    VAR.reset(token)
    error = ValueError(held)
    error.more = other  # type: ignore[attr-defined]
    assert parts_of(error) == [other, held]
    assert any(one is held for one in parts_of(iter(held)))
    assert {type(one) for one in parts_of(zip(held))} == {type(iter(held))}
    for nothing in (1.5, torch.float32, len.__doc__, object()):
        assert parts_of(nothing) == []


def test_attributes_wherever_they_are() -> None:
    held, other = [1], [2]
    both, slotted, named = Both(), Slotted(), Named()
    both.one = slotted.one = named.one = held  # type: ignore[attr-defined]
    both.more = other  # type: ignore[attr-defined]
    assert parts_of(both) == [other, held] and parts_of(slotted) == [held] and parts_of(Asked(held)) == [held]
    assert held in parts_of(named)
    assert parts_of(super(Both, both)) == [both] and parts_of(Readers()) == [], "ours hold nothing of the user's"


def test_with_what_is_in_the_namespace_of_those_whose_parts_are_others() -> None:
    held = [1]

    def function() -> None: ...

    function.more = held  # type: ignore[attr-defined]
    assert parts_of(function) == []
    assert list(reader_of(types.FunctionType, namespaces=True)(function)) == [held]
    partial = functools.partial(len)
    partial.more = held  # type: ignore[attr-defined]
    assert list(reader_of(functools.partial, namespaces=True)(partial)) == [len, held]
    thing = Thing(held)
    assert list(reader_of(Thing, namespaces=True)(thing)) == [held], "once"


def test_each_class_is_asked_once() -> None:
    readers = Readers()
    assert readers.of(Thing) is readers.of(Thing) and readers.of(Thing) is not readers.of(Both)
    assert list(readers.parts(Thing(5))) == [5] and list(readers.parts(Both())) == []
