"""Objects that a Program knows as the very ones, inside values that guards compare by content.

    HELD = [0, inner]      guard: HELD looks like [0, [1]]; where ``inner`` leaves the call, or is written, or was
                           compared with ``is``, also: HELD[1] is this very list

What looks at such a value item by item stays ``guards.is_like``; here is what it adds for the places where pinned
objects are, and only for those.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from runtime.kinds import is_a
from runtime.tracer.ambient.objects import own_items, own_length

Test = Callable[[Any], bool]
_ITEMS = 4096
_DEPTH = 32


def pins(value: Any, pinned: Mapping[int, Any], around: tuple[Any, ...] = ()) -> Test | None:
    """A test that the pinned objects in a value are in the same places of what looks like it; None if there are none.

    ``pinned`` holds them by identity; ``around``: the containers that ``value`` is in.

    >>> inner = [1]
    >>> test = pins([0, {"a": inner}], {id(inner): inner})
    >>> test([0, {"a": inner}]), test([0, {"a": [1]}])
    (True, False)
    """
    if id(value) in pinned:
        return _and(lambda other: other is value, _inside(value, pinned, around))
    return _inside(value, pinned, around)


def _inside(value: Any, pinned: Mapping[int, Any], around: tuple[Any, ...]) -> Test | None:
    if len(around) >= _DEPTH or any(one is value for one in around):
        return None  # compared by identity
    inside = (*around, value)
    if is_a(value, (list, tuple, deque)) and own_length(value) <= _ITEMS:
        return _at({place: pins(item, pinned, inside) for place, item in enumerate(own_items(value))})
    if is_a(value, (dict, types.MappingProxyType)):
        kind: Any = dict if is_a(value, dict) else types.MappingProxyType
        if kind.__len__(value) > _ITEMS:
            return None
        items = _at({key: pins(item, pinned, inside) for key, item in kind.items(value)})
        keys = pins(tuple(kind.__iter__(value)), pinned, inside)
        return _and(items, None if keys is None else lambda other: keys(tuple(kind.__iter__(other))))
    if is_a(value, (set, frozenset)) and own_length(value) <= _ITEMS:
        held = {id(item) for item in own_items(value) if id(item) in pinned}
        return (lambda other: held <= {id(item) for item in own_items(other)}) if held else None
    if is_a(value, numpy.ndarray):
        base = value.base
        of = (lambda other: other.base is base) if base is not None and id(base) in pinned else None
        if not value.dtype.hasobject or value.size > _ITEMS:
            return of
        objects = pins(value.ravel().tolist(), pinned, inside)
        return _and(of, None if objects is None else lambda other: objects(other.ravel().tolist()))
    if is_a(value, memoryview) and id(value.obj) in pinned:
        return lambda other: other.obj is value.obj
    if is_a(value, slice):
        parts = pins((value.start, value.stop, value.step), pinned, inside)
        return None if parts is None else lambda other: parts((other.start, other.stop, other.step))
    return None


def _and(one: Test | None, two: Test | None) -> Test | None:
    if one is None or two is None:
        return one or two
    return lambda other: one(other) and two(other)


def _at(tests: Mapping[Any, Test | None]) -> Test | None:
    """The tests of items, by position or key."""
    found = [(key, test) for key, test in tests.items() if test is not None]
    if len(found) == 1:
        (place, only), = found
        return lambda other: only(other[place])
    return (lambda other: all(test(other[key]) for key, test in found)) if found else None


__all__ = ["pins"]
