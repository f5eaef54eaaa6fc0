"""Methods of lists, tuples and deques that compare items, written in Python: what a trace runs where tensors decide.

These functions are converted as the user's are, so a list that grew is a staged loop in them, and ``==`` of two tensors
is a condition of the Program. Errors stand where the user calls them.

>>> index([3, 1, 2, 1], 1, list, 2, 4), count((1, 2, 1), 1)
(3, 2)
"""

from __future__ import annotations

from collections import deque
from typing import Any, NoReturn

from dy2static.operators.values.f_string import format_value


class _Value:
    def __repr__(self) -> str:
        return "VALUE"


def _words(items: Any, method: str) -> tuple[bool, str]:
    """What Python says of a value that is not there, which differs between its versions: whether that begins with the
    value, and the rest."""
    try:
        getattr(items, method)(_Value())
    except ValueError as error:
        said = str(error)
        return said.startswith("VALUE"), said.removeprefix("VALUE")
    raise AssertionError("an empty sequence has no items")


_MISSING: dict[tuple[type, str], tuple[bool, str]] = {
    (kind, method): _words(kind(), method)
    for kind in (list, tuple, deque) for method in ("index", "remove") if hasattr(kind, method)
}  # fmt: skip


def _raise_missing(value: Any, kind: type, method: str) -> NoReturn:
    named, rest = _MISSING[kind, method]
    if named:
        raise ValueError(f"{value!r}{rest}")
    raise ValueError(rest)


def missing(value: Any, kind: type, method: str) -> ValueError:
    """What a search raises that does not find a value in a sequence of a kind."""
    named, rest = _MISSING[kind, method]
    return ValueError(format_value(value, "r") + rest if named else rest)


def index(items: Any, value: Any, kind: type, start: int, stop: int) -> int:
    """``items.index(value, start, stop)``, for bounds inside of the list or deque, which is of this ``kind``."""
    for i in range(start, stop):
        if value in (items[i],):  # the same one, or equal
            return i
    _raise_missing(value, kind, "index")


def count(items: Any, value: Any) -> int:
    found = 0
    for item in items:
        if value in (item,):
            found += 1
    return found


def remove(items: Any, value: Any, kind: type) -> None:
    for i in range(len(items)):
        if value in (items[i],):  # the same one, or equal
            del items[i]
            return
    _raise_missing(value, kind, "remove")


def sort(items: Any, key: Any, reverse: Any) -> None:
    items[:] = sorted(items, key=key, reverse=reverse)


def sorted_by(items: Any, key: Any, reverse: Any) -> list[Any]:
    """``sorted(items, key=key, reverse=reverse)`` of a list whose length only the run knows: each item is put in its
    place among those before it, behind its equals."""
    made: list[Any] = []
    keys: list[Any] = []
    for item in items:
        own = item if key is None else key(item)
        if not isinstance(own, (tuple, list)) and own != own:  # what is inside of these is itself
            raise ValueError("sorted() of nan: its place is not defined")
        place = len(made)
        while place > 0 and (keys[place - 1] < own if reverse else own < keys[place - 1]):
            place -= 1
        made.insert(place, item)
        keys.insert(place, own)
    return made
