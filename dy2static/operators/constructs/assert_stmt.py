"""``assert``: at once, or when the Program runs.

    assert ok, f"bad {n}"   ->   assert_stmt(ok, lambda: f"bad {n}")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.staging import NO_NAMES, Session, Staged, active
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.control import cond as tracer_cond


def assert_stmt(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise AssertionError if ``cond`` is false; ``message`` is evaluated only then."""
    session = active()
    if session is not None:
        cond = truth_of(session, cond)
        if is_a(cond, Staged):
            _stage(session, cond, message)
            return
    if not cond:
        raise AssertionError if message is None else AssertionError(message())


def _stage(session: Session, flag: Staged, message: Callable[[], Any] | None) -> None:
    text = message() if message is not None and _is_constant(message) else None
    if message is None or is_a(text, str):
        session.emit("assert", [session.operand(flag)], attrs={"exception": "AssertionError", "message": text})
        return
    evaluate = message

    def fail() -> None:
        raise call(AssertionError, evaluate())

    tracer_cond.cond(session, flag, lambda: None, fail, NO_NAMES)


def _is_constant(message: Callable[[], Any]) -> bool:
    code = unasked(message, "__code__")
    return code is not None and not code.co_names and not code.co_freevars
