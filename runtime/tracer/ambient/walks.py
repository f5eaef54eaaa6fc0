"""Walks through what values hold that enter each object once: a list may hold itself, or another many times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runtime.kinds import is_a

Parts = Callable[[Any], Iterable[Any]]


def walk(values: Iterable[Any], parts: Parts, deepest: int) -> Iterator[Any]:
    """The values, then their ``parts``, then those of these, ``deepest`` levels down.

    Where a list or tuple is said to be its own parts, these are what it stores, whatever methods its class has.

    >>> items = [1, 2]
    >>> items[:] = [items, items, 3]
    >>> [type(one).__name__ for one in walk([items], lambda one: one if type(one) is list else (), 9)]
    ['list', 'list', 'list', 'int']
    """
    seen: set[int] = set()
    level = list(values)
    levels = [level]  # what a part was made for lives until the end: another one could come to lie in its place
    for _ in range(deepest):
        following: list[Any] = []
        levels.append(following)
        for value in level:
            yield value
            if id(value) not in seen:
                before = len(following)
                found = parts(value)
                if type(found) not in (list, tuple) and is_a(found, (list, tuple)):
                    found = list.__iter__(found) if is_a(found, list) else tuple.__iter__(found)
                for part in found:
                    following.append(part)  # extend asks a user's class for its length
                if len(following) > before:
                    seen.add(id(value))
        if not following:
            return
        level = following
    yield from level


__all__ = ["Parts", "walk"]
