"""``Pair._make(items)`` in Python that is converted: only the run may know how many items there are."""

from __future__ import annotations

from typing import Any


def make(cls: Any, iterable: Any) -> Any:
    values = tuple(iterable)
    count = len(cls._fields)
    if len(values) != count:
        raise TypeError(f"Expected {count} arguments, got {len(values)}")
    return tuple.__new__(cls, [values[index] for index in range(count)])
