"""Python's recursion limit while code is converted and traced: raised, and what it was afterwards."""

from __future__ import annotations

import sys
import threading

import pytest

from runtime import recursion_limit
from runtime.recursion_limit import room


def deep(levels: int) -> int:
    return levels if levels == 0 else 1 + deep(levels - 1)


def test_there_is_room_for_as_many_frames_as_are_asked_for() -> None:
    before = sys.getrecursionlimit()
    with room(before + 3_000):
        assert deep(before + 2_000) == before + 2_000
    assert sys.getrecursionlimit() == before


def test_room_inside_of_room_is_counted_from_there() -> None:
    before = sys.getrecursionlimit()
    with room(2_000):
        first = sys.getrecursionlimit()

        def inside(levels: int) -> None:
            if levels:
                return inside(levels - 1)
            with room(2_000):
                assert sys.getrecursionlimit() >= first + 100

        inside(100)
        assert sys.getrecursionlimit() == first
    assert sys.getrecursionlimit() == before


def test_the_limit_is_put_back_after_an_error() -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(KeyError), room(before + 500):
        raise KeyError
    assert sys.getrecursionlimit() == before


def test_a_higher_limit_of_the_users_stays() -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(9_000)
    try:
        with room(10):
            assert sys.getrecursionlimit() == 9_000
            assert recursion_limit.most_calls() == recursion_limit.CALLS
    finally:
        sys.setrecursionlimit(before)


def test_how_many_calls_there_may_be_is_the_users_limit_also_inside() -> None:
    with room(before := sys.getrecursionlimit() + 1_000):
        assert recursion_limit.most_calls() < before


def test_threads_that_come_and_go_leave_the_limit_as_it_was() -> None:
    before = sys.getrecursionlimit()
    inside, out = threading.Barrier(2), threading.Event()

    def first() -> None:
        with room(before + 100):
            inside.wait(60)
        out.set()

    def second() -> None:
        with room(before + 700):
            inside.wait(60)
            out.wait(60)
            assert deep(before) == before

    found: list[BaseException] = []

    def held(run: object) -> None:
        try:
            run()  # type: ignore[operator]
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=held, args=(run,)) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not found and sys.getrecursionlimit() == before


def test_a_limit_that_is_set_inside_is_the_users_from_then_on() -> None:
    before = sys.getrecursionlimit()
    try:
        with room(before + 500):
            sys.setrecursionlimit(before + 50)
            assert recursion_limit.users() == before + 50
            with room(before + 500):
                assert sys.getrecursionlimit() > before + 500
        assert sys.getrecursionlimit() == before + 50
    finally:
        sys.setrecursionlimit(before)
    assert recursion_limit.users() == before
