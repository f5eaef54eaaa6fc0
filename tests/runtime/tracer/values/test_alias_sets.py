"""Alias sets of items: what went in may be what comes out, merged sets are one, a write loses all that may be it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from runtime.ir import Location
from runtime.tracer.values import alias_sets
from runtime.tracer.values.alias_sets import AliasSet, inherit, may_be_one


class Memory:
    def __init__(self, origin: Any = None) -> None:
        self.origin = origin
        self.lost: Any = None
        self.alias_sets: list[Any] = []


class Rows:
    lost: Any = None


class Session:
    def location(self) -> Location:
        return Location("f.py", 3)


@pytest.fixture(autouse=True)
def unrelated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alias_sets, "related", lambda session, storage: [storage])


def put_in(alias_set: AliasSet, *memory: Any) -> None:
    for one in memory:
        one.alias_sets.append((alias_set, None))
    alias_set.note_put(memory)


def got_out(alias_set: AliasSet) -> Any:
    one: Any = Memory()
    one.alias_sets.append((alias_set, None))
    alias_set.note_got(one)
    return one


def made(puts: int, gots: int) -> tuple[Any, list[Any], list[Any]]:
    alias_set: Any = AliasSet()
    put = [Memory() for _ in range(puts)]
    put_in(alias_set, *put)
    return alias_set, put, [got_out(alias_set) for _ in range(gots)]


def test_an_item_that_came_out_may_be_any_that_went_in() -> None:
    alias_set, put, got = made(2, 2)
    other: Any = Memory()
    for a, b in itertools.product(put + got, got):
        assert may_be_one(a, b) and may_be_one(b, a)
    assert not may_be_one(put[0], put[1])
    assert not any(may_be_one(one, other) or may_be_one(other, one) for one in put + got)


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 1), (1, 2), (2, 3)])))
def test_merged_sets_are_one_in_any_order(order: Any) -> None:
    alias_sets, puts, gots = zip(*(made(1, 1) for _ in range(4)))
    for a, b in order:
        alias_sets[a].merge(alias_sets[b])
    assert len({alias_set.find() for alias_set in alias_sets}) == 1
    for put, got in itertools.product(puts, gots):
        assert may_be_one(put[0], got[0])
    assert alias_sets[0].merge(alias_sets[3]) is alias_sets[0].find()


@pytest.mark.parametrize("written", ["put", "got"])
def test_a_write_loses_what_may_be_the_same(written: str) -> None:
    alias_set, put, got = made(2, 2)
    lists: list[Any] = [Rows(), Rows()]
    for one in lists:
        alias_set.hold(one)
    session: Any = Session()
    storage = (put if written == "put" else got)[0]
    assert not alias_set.lose(session, storage)
    assert storage.lost is None and all(one.lost.location.line == 3 for one in lists)
    assert all(one.lost is not None for one in got if one is not storage)
    assert all((one.lost is not None) == (written == "got") for one in put if one is not storage)


def test_a_write_that_the_caller_would_see_is_told() -> None:
    alias_set, put, _ = made(1, 1)
    put[0].origin = "argument"
    session: Any = Session()
    out = got_out(alias_set)
    assert alias_set.lose(session, out) and put[0].lost is not None


def test_memory_that_stands_for_a_member_is_one() -> None:
    alias_set, put, got = made(1, 1)
    joined: Any = Memory()
    assert inherit(joined, put[0]) and not inherit(joined, put[0])
    assert joined.alias_sets == [(alias_set, None)]
    assert may_be_one(joined, got[0]) and not may_be_one(joined, put[0])


def chain(count: int) -> tuple[list[AliasSet], Any, list[Any]]:
    """Sets, of each of which an item was put into the next one; what the first had; an item of each."""
    sets = [AliasSet() for _ in range(count)]
    first: Any = Memory()
    put_in(sets[0], first)
    items = []
    for one, following in zip(sets, [*sets[1:], None]):
        items.append(got_out(one))
        if following is not None:
            put_in(following, got_out(one))  # nothing else has it
    return sets, first, items


def test_items_of_lists_made_of_items() -> None:
    sets, first, items = chain(3)
    other: Any = Memory()
    put_in(sets[2], other)
    for one in items:
        assert may_be_one(one, first) and may_be_one(first, one)
    assert may_be_one(items[0], items[2]) and may_be_one(items[2], other)
    assert not may_be_one(items[0], other) and not may_be_one(items[1], other) and not may_be_one(first, other)
    assert sets[0].may_hold(items[2]) and sets[2].may_hold(first) and not sets[0].may_hold(other)


@pytest.mark.parametrize(("written", "lost"), [("first", 3), ("item", 3), ("other", 1)])
def test_a_write_goes_through_all_sets(written: str, lost: int) -> None:
    sets, first, items = chain(3)
    other: Any = Memory()
    put_in(sets[2], other)
    lists: list[Any] = [Rows() for _ in sets]
    for one, rows in zip(sets, lists):
        one.hold(rows)
    session: Any = Session()
    storage = {"first": first, "item": items[2], "other": other}[written]
    for known, _ in storage.alias_sets:
        known.lose(session, storage)
    assert [one.lost is not None for one in lists] == [False] * (3 - lost) + [True] * lost
    assert (first.lost is not None) == (written == "item")
    assert [one.lost is not None for one in items] == {
        "first": [True] * 3, "item": [True, True, False], "other": [False, False, True]}[written]  # fmt: skip


def test_what_two_lists_have_that_nothing_else_has() -> None:
    sets: list[Any] = [AliasSet(), AliasSet(), AliasSet()]
    shared: Any = Memory()
    put_in(sets[0], shared)
    put_in(sets[1], shared)
    del shared
    lists: list[Any] = [Rows() for _ in sets]
    for one, rows in zip(sets, lists):
        one.hold(rows)
    items = [got_out(one) for one in sets]
    assert may_be_one(items[0], items[1]) and not may_be_one(items[0], items[2])
    session: Any = Session()
    sets[0].lose(session, items[0])
    assert [one.lost is not None for one in lists] == [True, True, False] and items[1].lost is not None
