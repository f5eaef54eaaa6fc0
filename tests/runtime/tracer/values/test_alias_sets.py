"""Alias sets of items: what went in may be what comes out, merged sets are one, a write loses all that may be it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from runtime.ir import Location
from runtime.tracer.values import alias_sets
from runtime.tracer.values.alias_sets import Pool, inherit


class Memory:
    def __init__(self, origin: Any = None) -> None:
        self.origin = origin
        self.lost: Any = None
        self.pools: list[Any] = []


class Rows:
    lost: Any = None


class Session:
    def location(self) -> Location:
        return Location("f.py", 3)


@pytest.fixture(autouse=True)
def unrelated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alias_sets, "related", lambda session, storage: [storage])


def made(puts: int, gots: int) -> tuple[Any, list[Any], list[Any]]:
    pool: Any = Pool()
    put, got = [Memory() for _ in range(puts)], [Memory() for _ in range(gots)]
    pool.note_put(put)
    for one in got:
        pool.note_got(one)
    return pool, put, got


def test_an_item_that_came_out_may_be_any_that_went_in() -> None:
    pool, put, got = made(2, 2)
    other: Any = Memory()
    for a, b in itertools.product(put + got, got):
        assert pool.may_be_one(a, b) and pool.may_be_one(b, a)
    assert not pool.may_be_one(put[0], put[1])
    assert not any(pool.may_be_one(one, other) or pool.may_be_one(other, one) for one in put + got)


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 1), (1, 2), (2, 3)])))
def test_merged_sets_are_one_in_any_order(order: Any) -> None:
    pools, puts, gots = zip(*(made(1, 1) for _ in range(4)))
    for a, b in order:
        pools[a].merge(pools[b])
    assert len({pool.find() for pool in pools}) == 1
    for pool, put, got in itertools.product(pools, puts, gots):
        assert pool.may_be_one(put[0], got[0])
    assert pools[0].merge(pools[3]) is pools[0].find()


@pytest.mark.parametrize("written", ["put", "got"])
def test_a_write_loses_what_may_be_the_same(written: str) -> None:
    pool, put, got = made(2, 2)
    lists: list[Any] = [Rows(), Rows()]
    for one in lists:
        pool.hold(one)
    session: Any = Session()
    storage = (put if written == "put" else got)[0]
    assert not pool.lose(session, storage)
    assert storage.lost is None and all(one.lost.location.line == 3 for one in lists)
    assert all(one.lost is not None for one in got if one is not storage)
    assert all((one.lost is not None) == (written == "got") for one in put if one is not storage)


def test_a_write_that_the_caller_would_see_is_told() -> None:
    pool, put, _ = made(1, 1)
    put[0].origin = "argument"
    session: Any = Session()
    out: Any = Memory()
    pool.note_got(out)
    assert pool.lose(session, out) and put[0].lost is not None


def test_memory_that_stands_for_a_member_is_one() -> None:
    pool, put, got = made(1, 1)
    put[0].pools.append((pool, 0))
    joined: Any = Memory()
    assert inherit(joined, put[0]) and not inherit(joined, put[0])
    assert joined.pools == [(pool, 0)] and pool.may_be_one(joined, got[0]) and not pool.may_be_one(joined, put[0])
