"""``itertools``, written in Python: what a trace runs where C code would not see the items, or not the condition.

These functions are converted as the user's are, so a list that grew is a staged loop in them, and a predicate may
decide on a tensor. Errors stand where the user calls them. What may be a generator comes as ``Held`` (see
``dy2static.operators.iteration.generator``); a parameter named ``items`` is a list, a tuple or the like.

>>> list(islice(Held("abcdefg"), 1, 6, 2)), list(zip_longest("ab", "c", fillvalue="-"))
(['b', 'd', 'f'], [('a', 'c'), ('b', '-')])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dy2static.operators.iteration.generator import Held, take


def takewhile(predicate: Callable[[Any], Any], iterable: Held) -> Iterator[Any]:
    for item in take(iterable):
        if not predicate(item):
            break
        yield item


def dropwhile(predicate: Callable[[Any], Any], iterable: Held) -> Iterator[Any]:
    dropping = True
    for item in take(iterable):
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def filterfalse(predicate: Callable[[Any], Any] | None, iterable: Held) -> Iterator[Any]:
    for item in take(iterable):
        if predicate is None:
            if not item:
                yield item
        elif not predicate(item):
            yield item


def starmap(function: Callable[..., Any], iterable: Held) -> Iterator[Any]:
    for items in take(iterable):
        yield function(*items)


def chain(*iterables: Held) -> Iterator[Any]:
    for iterable in iterables:
        yield from take(iterable)


def chained(iterables: Held) -> Iterator[Any]:
    """``chain.from_iterable``."""
    for items in take(iterables):
        yield from items


def islice(iterable: Held, start: int, stop: int | None, step: int) -> Iterator[Any]:
    if stop is not None and stop <= 0:
        return
    position, wanted = 0, start
    for item in take(iterable):
        if position == wanted:
            wanted = wanted + step
            yield item
        position = position + 1
        if stop is not None and position >= stop:
            break


def compress(items: Any, selectors: Any) -> Iterator[Any]:
    for item, selected in zip(items, selectors):
        if selected:
            yield item


def accumulate(items: Any, function: Callable[[Any, Any], Any]) -> Iterator[Any]:
    if len(items) > 0:
        total = items[0]
        yield total
        for item in items[1:]:
            total = function(total, item)
            yield total


def accumulated(iterable: Held, function: Callable[[Any, Any], Any], initial: Any) -> Iterator[Any]:
    """``accumulate`` with an initial value."""
    total = initial
    yield total
    for item in take(iterable):
        total = function(total, item)
        yield total


def accumulated_perhaps(iterable: Held, function: Callable[[Any, Any], Any], initial: Any) -> Iterator[Any]:
    """``accumulate`` with an initial value, or None, on different paths."""
    begun, total = initial is not None, initial
    if begun:
        yield total
    for item in take(iterable):
        if begun:
            total = function(total, item)
        else:
            begun, total = True, item
        yield total


def accumulated_lazily(iterable: Held, function: Callable[[Any, Any], Any]) -> Iterator[Any]:
    """``accumulate`` of a generator, which goes on only when the next total is asked for."""
    first, total = True, None
    for item in take(iterable):
        if first:
            first, total = False, item
        else:
            total = function(total, item)
        yield total


def pairs_lazily(iterable: Held) -> Iterator[Any]:
    """``pairwise`` of a generator."""
    first, before = True, None
    for item in take(iterable):
        if first:
            first = False
        else:
            yield before, item
        before = item


def pairwise(items: Any) -> Iterator[Any]:
    yield from zip(items, items[1:])


def zip_longest(*sequences: Any, fillvalue: Any) -> Iterator[Any]:
    for index in range(max([len(items) for items in sequences])):
        yield tuple([items[index] if index < len(items) else fillvalue for items in sequences])


def product(pools: Any) -> Iterator[Any]:
    if len(pools) == 0:
        yield ()
    else:
        for item in pools[0]:
            for others in product(pools[1:]):
                yield (item, *others)


def combinations(pool: Any, count: int, start: int, repeated: int) -> Iterator[Any]:
    """``combinations``, and those with replacement, where each item may be taken again: ``repeated`` is 1."""
    if count == 0:
        yield ()
    else:
        for index in range(start, len(pool)):
            for others in combinations(pool, count - 1, index + 1 - repeated, repeated):
                yield (pool[index], *others)


def permutations(pool: Any, count: int, used: tuple[int, ...]) -> Iterator[Any]:
    if count == 0:
        yield ()
    else:
        for index in range(len(pool)):
            if index not in used:
                for others in permutations(pool, count - 1, (*used, index)):
                    yield (pool[index], *others)


class Groups:
    """Where ``groupby`` is: ``now``, at which item the group begins that was given last, the others have no items any
    more; ``place``, which item comes next."""

    def __init__(self, items: Any, key: Callable[[Any], Any] | None) -> None:
        self.items = items
        self.key = key
        self.keys = items if key is None else []
        self.now = -1
        self.place = 0

    def key_of(self, place: Any) -> Any:
        """The key of an item: asked for once, and not before."""
        if self.key is not None:
            while len(self.keys) <= place:
                self.keys.append(self.key(self.items[len(self.keys)]))
        return self.keys[place]


class Group:
    """The items of a group, which are given once."""

    def __init__(self, groups: Groups, number: Any) -> None:
        self.groups = groups
        self.number = number

    def __iter__(self) -> Iterator[Any]:
        groups = self.groups
        if groups.now == self.number:
            key = groups.key_of(groups.now)
            while groups.now == self.number and groups.place < len(groups.items) and groups.key_of(groups.place) == key:
                groups.place += 1
                yield groups.items[groups.place - 1]


def groupby(items: Any, key: Callable[[Any], Any] | None) -> Iterator[Any]:
    groups = Groups(items, key)
    while groups.place < len(items):  # it may grow meanwhile
        groups.now = groups.place
        found = groups.key_of(groups.now)
        yield found, Group(groups, groups.now)
        while groups.place < len(items) and groups.key_of(groups.place) == found:
            groups.place += 1
    groups.now = -1


def batched(items: Any, size: int) -> Iterator[Any]:
    for start in range(0, len(items), size):
        yield tuple(items[start : start + size])
