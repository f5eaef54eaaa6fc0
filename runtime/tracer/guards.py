"""Guards: the Python facts a trace depended on. A cached Program is used only while all of them still hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
_LIMIT = 512


def is_plain(value: object) -> bool:
    """Whether a value is compared by type and value (a number, string, dtype...)."""
    return type(value) in _PLAIN


def same_plain(a: object, b: object) -> bool:
    """Whether two plain values are the same: 1, True and 1.0 differ, so do 0.0 and -0.0; nan equals nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        assert isinstance(b, float)
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    if isinstance(a, complex):
        return repr(a) == repr(b)
    return a == b


def snapshot(value: Any, budget: list[int] | None = None) -> Any:
    """A comparable picture of a value: plain values by type and value, containers item by item, others by identity."""
    budget = budget if budget is not None else [_LIMIT]
    budget[0] -= 1
    if budget[0] < 0:
        return ("id", value)
    if is_plain(value):
        return ("=", value)
    kind = type(value)
    if kind in (list, tuple):
        return (kind, tuple(snapshot(item, budget) for item in value))
    if kind is dict:
        return (kind, tuple((snapshot(key, budget), snapshot(item, budget)) for key, item in value.items()))
    if kind in (set, frozenset):
        return (kind, frozenset(value)) if all(is_plain(item) for item in value) else ("id", value)
    return ("id", value)


def same_snapshot(a: Any, b: Any) -> bool:
    """Whether two snapshots picture the same state."""
    if a[0] is not b[0] and a[0] != b[0]:
        return False
    if a[0] == "=":
        return same_plain(a[1], b[1])
    if a[0] == "id":
        return a[1] is b[1]
    if a[0] in (set, frozenset):
        return {(type(item), item) for item in a[1]} == {(type(item), item) for item in b[1]}
    if len(a[1]) != len(b[1]):
        return False
    if a[0] is dict:
        return all(same_snapshot(k1, k2) and same_snapshot(v1, v2) for (k1, v1), (k2, v2) in zip(a[1], b[1]))
    return all(same_snapshot(x, y) for x, y in zip(a[1], b[1]))


class _Unset:
    pass


_UNSET = _Unset()


@dataclass(eq=False)
class Guard:
    """One fact: ``read()`` still gives what it gave while tracing."""

    description: str
    read: Callable[[], Any]
    expected: Any

    def holds(self) -> bool:
        """Whether the fact is still true; reading that fails counts as changed."""
        try:
            value = self.read()
        except (AttributeError, KeyError, IndexError, NameError, ValueError):
            value = _UNSET
        kind = self.expected[0]
        if kind == "=":
            return same_plain(value, self.expected[1])
        if kind == "id":
            return value is self.expected[1]
        return same_snapshot(snapshot(value), self.expected)


class GuardSet:
    """The guards of one trace, each fact once."""

    def __init__(self) -> None:
        self._guards: dict[Any, Guard] = {}

    def add(self, key: Any, description: str, read: Callable[[], Any], value: Any) -> None:
        """Record that ``read()`` gave ``value``. ``key`` identifies the fact; the first record of a fact counts."""
        if key not in self._guards:
            self._guards[key] = Guard(description, read, snapshot(value))

    def discard(self, key: Any) -> None:
        """Forget a fact (its place is written by the Program itself and handled otherwise)."""
        self._guards.pop(key, None)

    def freeze(self) -> tuple[Guard, ...]:
        """All guards, in the order they were recorded."""
        return tuple(self._guards.values())
