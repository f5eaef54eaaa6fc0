"""Generators that are left half-way inside of a ``try`` or ``with`` (see ``runtime.tracer.python_state.waiting``).

    with waiting() as waits:
        try:
            yield x
        finally:
            left(waits)               # the trace may be over: then nothing of this is done any more
            print("left")
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Session, active
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import is_for_user
from runtime.tracer.python_state import waiting as records


class waiting:  # reads as a statement in generated code
    """Around a ``try`` or ``with`` in which a generator may wait."""

    def __init__(self) -> None:
        session = active()
        self._session = None if session is None else weakref.ref(session)
        self._waiting: Any = None

    def __enter__(self) -> waiting:
        session = self._traced()
        if session is not None:
            self._waiting = records.begin(session, _is_for_with(sys._getframe(1)))
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        session = self._traced()
        if session is not None:
            records.end(session, self._waiting)

    def _traced(self) -> Session | None:
        return None if self._session is None else self._session()

    def is_over(self, frame: FrameType) -> bool:
        """Whether the generator is ended after the trace, or the attempt, that it belongs to: what the program would do
        now is not done. ``frame``: the generator's.

        That it is ended in another place than eager would is noted.
        """
        if self._session is None:
            return False
        session = self._traced()
        if session is None or session is not active() or self._waiting not in session.code.waiting:
            return True
        if self._waiting.path is not session.journal.frames[-1] or not _is_of_program(frame.f_back):
            session.code.misplaced.append(self._waiting.location)
        return False


def left(waits: waiting) -> None:
    """Where a ``finally`` or handler begins: end the generator without it, if the trace is over."""
    if is_a(sys.exc_info()[1], GeneratorExit) and waits.is_over(sys._getframe(1)):
        raise GeneratorExit


class Within:
    """A manager that a generator waits in."""

    def __init__(self, waits: waiting, manager: Any) -> None:
        self.waits, self.manager = waits, manager


def within(waits: waiting, manager: Any) -> Any:
    """The manager of a ``with`` statement that a generator waits in."""
    return manager if active() is None else Within(waits, manager)


def ends_with_calls(function: _Function) -> _Function:
    """Of a function of ours that calls what the program calls, and holds nothing for longer than the program does."""
    _CALLING.add(function.__code__)
    return function


_Function = TypeVar("_Function", bound=Callable[..., Any])
_CALLING: set[CodeType] = set()


def _is_of_program(frame: FrameType | None) -> bool:
    """Whether it is the program that lets go of a generator, or ends it, where Python runs such a frame."""
    if frame is None:
        return False
    code = frame.f_code
    return home_of(code.co_filename) != "dy2static" or code in _CALLING or is_for_user(code)


def _is_for_with(frame: FrameType) -> bool:
    caller = frame.f_back
    return caller is not None and caller.f_code.co_filename == contextlib.__file__


__all__ = ["Within", "ends_with_calls", "left", "waiting", "within"]
