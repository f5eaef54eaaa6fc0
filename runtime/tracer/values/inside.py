"""What a Python value shows of itself: the objects that a trace knows once it knows the value.

A trace that read ``HELD = [0, (inner,)]`` has ``inner`` in hand, by whatever other name it is known as well.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import deque
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy

from runtime.kinds import is_a
from runtime.tracer.ambient.objects import own_items
from runtime.tracer.values.structure import is_namedtuple

_ITEMS = 20_000
_HOLDERS = (list, dict, set, deque)


def inside(value: Any) -> Iterable[Any]:
    """The objects directly in a container, in an array of objects, or bound by a partial or a built-in method."""
    if is_a(value, (dict, list, tuple, set, frozenset, deque)):
        return own_items(value)
    if is_a(value, types.MappingProxyType):
        try:
            return value.values()
        except AttributeError:  # it may be of anything that has items
            return ()
    if is_a(value, numpy.ndarray):
        return value.flat if value.dtype.hasobject else ()
    if is_a(value, functools.partial):
        return (value.func, *value.args, *value.keywords.values())
    if is_a(value, types.BuiltinMethodType) and is_a(value.__self__, _HOLDERS):
        return (value.__self__,)
    return ()


def leads_to(value: Any, wanted: Set[int]) -> bool:
    """Whether a value is one of some objects, given by identity, or has one inside at any depth."""
    todo, seen = [value], set[int]()
    while todo and len(seen) < _ITEMS:
        one = todo.pop()
        if id(one) in wanted:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            todo.extend(inside(one))
    return False


def shows_containers(value: Any) -> bool:
    """Whether a value is, or has inside, what is taken apart where it is an argument, and is no tuple."""
    todo, seen = [value], set[int]()
    while todo and len(seen) < _ITEMS:
        one = todo.pop()
        if _is_taken_apart(one):
            return True
        if id(one) not in seen:
            seen.add(id(one))
            todo.extend(inside(one))
    return False


def _is_taken_apart(value: Any) -> bool:
    if is_a(value, (list, Mapping, set)):
        return True
    return dataclasses.is_dataclass(type(value)) and not is_namedtuple(value)


__all__ = ["inside", "leads_to", "shows_containers"]
