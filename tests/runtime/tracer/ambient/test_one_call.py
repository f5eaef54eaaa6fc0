"""What is done for a call while it is traced is done once, however often that is; what can wait, waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime.tracer.ambient import one_call
from runtime.tracer.ambient.one_call import Taken, Use


class Counted:
    """Something that is asked, and counts it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def act(self, what: Any) -> Callable[[], Any]:
        def act() -> Any:
            self.asked.append(what)
            return len(self.asked)

        return act


def once(taken: Taken, owner: Counted, what: Any, is_question: bool = False) -> Any:
    return one_call.once(taken, owner, what, owner.act(what), is_question=is_question)


def test_another_trace_finds_it_done() -> None:
    one, other = Counted(), Counted()
    with one_call.one_call():
        for _ in range(3):
            taken: Taken = set()
            assert [once(taken, one, 5), once(taken, other, 5), once(taken, one, 5)] == [1, 1, 2]
    assert one.asked == [5, 5] and other.asked == [5]
    once(set(), one, 5)
    with one_call.one_call():
        assert once(set(), one, 5) == 4, "another call"


def test_a_trace_that_comes_to_more_does_only_that() -> None:
    one, other = Counted(), Counted()
    with one_call.one_call():
        first: Taken = set()
        once(first, one, 2)
        once(first, other, "b")
        second: Taken = set()
        assert [once(second, other, "a"), once(second, one, 2), once(second, other, "b"), once(second, one, 2)] == [
            2, 1, 1, 2]  # fmt: skip
    assert one.asked == [2, 2] and other.asked == ["b", "a"]


def test_what_came_after_a_question_is_not_what_comes_before_it() -> None:
    one = Counted()
    with one_call.one_call():
        first: Taken = set()
        for what, is_question in ((2, False), ("info", True), (3, False)):
            once(first, one, what, is_question)
        second: Taken = set()
        assert once(second, one, 3) == 4, "before the question"
        assert once(second, one, "info", True) == 2
        assert once(second, one, 3) == 3


def test_what_is_left_over_is_known() -> None:
    one, other = Counted(), Counted()
    with one_call.one_call():
        once(set(), one, 1)
        taken: Taken = set()
        assert one_call.has_more(taken, one) and not one_call.has_more(taken, other)
        once(taken, one, 1)
        assert not one_call.has_more(taken, one)


def test_exceptions_are_kept_as_well() -> None:
    asked = []

    def fails() -> None:
        asked.append(1)
        raise ValueError("no")

    with one_call.one_call():
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                one_call.once(set(), asked, 1, fails)
    assert asked == [1]


def test_a_use_waits_for_the_run() -> None:
    one = Counted()
    waiting, done = Use(one, 1, one.act(1)), Use(one, 2, one.act(2))
    with one_call.one_call():
        one_call.did(set(), done)
        assert one.asked == [2]
        for _ in range(2):  # the trace has done one of them in place of the first run
            for use in (waiting, done):
                use()
    assert one.asked == [2, 1, 1, 2]


def test_where_no_program_runs_the_end_counts() -> None:
    one = Counted()
    uses = [Use(one, 1, one.act(1)), Use(one, 2, one.act(2), done=True)]
    with one_call.one_call():
        with one_call.trying():
            one_call.settle(uses)
        assert one.asked == []
        one_call.settle(uses)
    one_call.settle(uses)
    assert one.asked == [1]


def test_trials_within_trials() -> None:
    with one_call.trying() as outer:
        with one_call.trying() as inner:
            assert one_call.is_tried()
        assert one_call.is_tried() and not outer.postponed
        with one_call.one_call():
            assert not one_call.is_tried(), "another call is at hand"
        one_call.postpone()
    assert outer.postponed and not inner.postponed and not one_call.is_tried()


def test_a_world_that_changed() -> None:
    one_call.note_unrepeatable(lambda: ValueError("nobody asks"))
    one_call.require_repeatable()
    with one_call.one_call():
        one_call.require_repeatable()
        one_call.note_unrepeatable(lambda: None)
        one_call.require_repeatable()
        one_call.note_unrepeatable(lambda: ValueError("changed"))
        with pytest.raises(ValueError, match="changed"):
            one_call.require_repeatable()
    one_call.require_repeatable()
