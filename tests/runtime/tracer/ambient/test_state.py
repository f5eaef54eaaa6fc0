"""The session of a thread: entered, left, put away for a while, and known to no other thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from runtime.errors import TraceError
from runtime.tracer.ambient import state
from runtime.tracer.recording.session import Session


def test_outside_of_a_trace_there_is_none() -> None:
    assert state.active() is None
    with pytest.raises(TraceError, match="D2S211\\] a value of a finished trace") as found:
        state.current()
    assert found.value.location is not None and found.value.location.file == __file__


def test_entering_gives_the_one_before(session: Session) -> None:
    assert state.active() is state.current() is session
    other = Session("g")
    assert state.enter(other) is session and state.current() is other
    assert state.enter(None) is other and state.active() is None
    assert state.enter(session) is None and state.current() is session


def test_away_for_a_while(session: Session) -> None:
    with state.away():
        assert state.active() is None
        with state.away():
            assert state.active() is None
        assert state.active() is None
        state.enter(Session("g"))
    assert state.active() is session
    with pytest.raises(ValueError), state.away():
        raise ValueError
    assert state.active() is session


def test_away_where_there_is_none() -> None:
    with state.away():
        pass
    assert state.active() is None


def test_each_thread_has_its_own(session: Session) -> None:
    seen: list[Any] = []

    def run() -> None:
        seen.append(state.active())
        state.enter(Session("g"))
        seen.append(state.active())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen[0] is None and seen[1] is not session and state.active() is session
