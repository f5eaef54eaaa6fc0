"""Alias sets of items: what went in may be what comes out, merged sets are one, a write loses all that may be it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from runtime.ir import Location
from runtime.tracer.values import alias_sets
from runtime.tracer.values.alias_sets import AliasSet, inherit


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


def made(puts: int, gots: int) -> tuple[Any, list[Any], list[Any]]:
    alias_set: Any = AliasSet()
    put, got = [Memory() for _ in range(puts)], [Memory() for _ in range(gots)]
    alias_set.note_put(put)
    for one in got:
        alias_set.note_got(one)
    return alias_set, put, got


def test_an_item_that_came_out_may_be_any_that_went_in() -> None:
    alias_set, put, got = made(2, 2)
    other: Any = Memory()
    for a, b in itertools.product(put + got, got):
        assert alias_set.may_be_one(a, b) and alias_set.may_be_one(b, a)
    assert not alias_set.may_be_one(put[0], put[1])
    assert not any(alias_set.may_be_one(one, other) or alias_set.may_be_one(other, one) for one in put + got)


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 1), (1, 2), (2, 3)])))
def test_merged_sets_are_one_in_any_order(order: Any) -> None:
    alias_sets, puts, gots = zip(*(made(1, 1) for _ in range(4)))
    for a, b in order:
        alias_sets[a].merge(alias_sets[b])
    assert len({alias_set.find() for alias_set in alias_sets}) == 1
    for alias_set, put, got in itertools.product(alias_sets, puts, gots):
        assert alias_set.may_be_one(put[0], got[0])
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
    out: Any = Memory()
    alias_set.note_got(out)
    assert alias_set.lose(session, out) and put[0].lost is not None


def test_memory_that_stands_for_a_member_is_one() -> None:
    alias_set, put, got = made(1, 1)
    put[0].alias_sets.append((alias_set, 0))
    joined: Any = Memory()
    assert inherit(joined, put[0]) and not inherit(joined, put[0])
    assert joined.alias_sets == [(alias_set, 0)]
    assert alias_set.may_be_one(joined, got[0]) and not alias_set.may_be_one(joined, put[0])
