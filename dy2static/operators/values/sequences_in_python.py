"""Operators of lists and tuples, written in Python: what a trace runs where only the run knows an item or a count.

These functions are converted as the user's are, so a count is a staged loop in them, and what items are compared for
is a condition of the Program. Errors stand where the user writes the operator.

>>> repeated([1, 2], 2), ordered((1, 2), (1, 3), lambda a, b: a < b)
([1, 2, 1, 2], True)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any


def isdisjoint(items: Any, others: Any) -> bool:
    """``items.isdisjoint(others)`` of a set: what follows the first item of both is not asked for."""
    for one in others:
        if one in items:
            return False
    return True


def issuperset(items: Any, others: Any) -> bool:
    """``items.issuperset(others)``, up to the first that is no item."""
    for one in others:
        if one not in items:
            return False
    return True


def intersection(items: Any, others: Any) -> set[Any]:
    """``items.intersection(others)``, until all items were found."""
    found: set[Any] = set()
    for one in others:
        if one in items:
            found.add(one)
            if len(found) >= len(items):
                break
    return found


def repeated(items: Any, count: int) -> list[Any]:
    """``items * count`` as a list."""
    made: list[Any] = []
    for _ in range(count):
        made.extend(items)
    return made


def repeated_tuple(items: Any, count: int) -> tuple[Any, ...]:
    return tuple(repeated(items, count))


def repeated_deque(items: Any, count: int) -> deque[Any]:
    made: deque[Any] = deque([], items.maxlen)
    made.extend(repeated(list(items), count))
    return made


def repeat(items: Any, count: int) -> None:
    """``items *= count`` of a list."""
    items[:] = repeated(items, count)


def repeat_deque(items: Any, count: int) -> None:
    made = repeated(list(items), count)
    items.clear()
    items.extend(made)


def insert(items: Any, index: int, value: Any) -> None:
    """``items.insert(index, value)`` of a list or deque whose length is known."""
    count = len(items)
    place = max(index + count, 0) if index < 0 else min(index, count)
    items.append(value)
    for i in range(count, 0, -1):
        if i > place:
            items[i] = items[i - 1]
        elif i == place:
            items[i] = value
    if place == 0:
        items[0] = value


def pop(items: Any, index: int) -> Any:
    """``items.pop(index)`` of such a list."""
    if len(items) == 0:
        raise IndexError("pop from empty list")
    if index < -len(items) or index >= len(items):
        raise IndexError("pop index out of range")
    found = items[index]
    _close(items, index)
    return found


def delete(items: Any, index: int, error: str) -> None:
    """``del items[index]`` of such a list or deque; ``error``: what Python says if there is no such item."""
    if index < -len(items) or index >= len(items):
        raise IndexError(error)
    _close(items, index)


def _close(items: Any, index: int) -> None:
    """The items behind one move to the left."""
    place = index + len(items) if index < 0 else index
    for i in range(len(items) - 1):
        if i >= place:
            items[i] = items[i + 1]
    items.pop()


def part(items: Any, start: int | None, stop: int | None) -> list[Any]:
    """``items[start:stop]`` of a list with items that can be changed: the very items."""
    count = len(items)
    made: list[Any] = []
    for i in range(_bound(0 if start is None else start, count), _bound(count if stop is None else stop, count)):
        made.append(items[i])
    return made


def set_part(items: list[Any], start: int | None, stop: int | None, values: list[Any]) -> None:
    """``items[start:stop] = values``."""
    count = len(items)
    first = _bound(0 if start is None else start, count)
    last = max(_bound(count if stop is None else stop, count), first)
    items[:] = items[:first] + values + items[last:]


def _bound(index: int, count: int) -> int:
    return max(index + count, 0) if index < 0 else min(index, count)


def contained(items: Any, value: Any) -> bool:
    """``value in items`` of a list whose length only the run knows."""
    for item in items:
        if value in (item,):  # the same one, or equal
            return True
    return False


def are_equal(first: Any, second: Any) -> bool:
    """``first == second`` of two lists or tuples of one kind, whose lengths only the run knows."""
    if len(first) != len(second):
        return False
    for place in range(len(first)):
        if second[place] not in (first[place],):
            return False
    return True


def ordered(first: Any, second: Any, compare: Callable[[Any, Any], Any]) -> Any:
    """What ``compare`` says of the first two items that differ, or else of the lengths."""
    for place in range(min(len(first), len(second))):
        a, b = first[place], second[place]
        if b not in (a,):  # another one, and not equal
            return compare(a, b)
    return compare(len(first), len(second))


def counted(items: Any) -> Counter[Any]:
    """``Counter(items)``: item by item, as all at once would be as many counters as there are combinations."""
    found: Counter[Any] = Counter()
    for item in items:
        found[item] += 1
    return found


def member_of(name: str, members: list[tuple[Any, Any]], value: Any) -> Any:
    """The member of an enumeration that has a value, of members with theirs. ``name``: that of its class."""
    for member, known in members:
        if known == value:
            return member
    raise ValueError(f"{value!r} is not a valid {name}")


__all__ = [
    "are_equal", "contained", "delete", "insert", "member_of", "ordered", "part", "pop", "repeat", "repeat_deque",
    "repeated", "repeated_deque", "repeated_tuple", "set_part",
]  # fmt: skip
