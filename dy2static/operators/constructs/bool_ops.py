"""``and``, ``or``, ``not``: Python's values and laziness; a staged left side stages the rest into a branch.

    a and b   ->   and_(lambda: a, lambda: b)
    not a     ->   not_(a)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.staging import NO_NAMES, Session, Staged, active
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.numbers import known_sizes


def and_(*parts: Callable[[], Any]) -> Any:
    """The first part that is false, or the last one; parts after it are not evaluated.

    >>> and_(lambda: 2, lambda: [], lambda: 1 / 0)
    []
    """
    session = active()
    if session is not None:
        return _staged(session, parts, stop=False)
    for part in parts[:-1]:
        value = part()
        if not value:
            return value
    return parts[-1]()


def or_(*parts: Callable[[], Any]) -> Any:
    """The first part that is true, or the last one; parts after it are not evaluated.

    >>> or_(lambda: 0, lambda: "b", lambda: 1 / 0)
    'b'
    """
    session = active()
    if session is not None:
        return _staged(session, parts, stop=True)
    for part in parts[:-1]:
        value = part()
        if value:
            return value
    return parts[-1]()


def _staged(session: Session, parts: tuple[Callable[[], Any], ...], stop: bool) -> Any:
    """Evaluate parts in order up to one whose truth is ``stop``."""
    value = parts[0]()
    if len(parts) == 1:
        return value
    flag = known_sizes.decide(session, truth_of(session, value))
    if is_a(flag, Staged):
        is_bool = is_a(value, Staged) and value.kind == "bool"
        last: list[Any] = []

        def rest() -> Any:
            last[:] = [_staged(session, parts[1:], stop)]
            return last[0]

        def here() -> Any:  # what a bool is on this path is known
            return stop if is_bool else value

        branches = (here, rest) if stop else (rest, here)
        result = tracer_cond.cond(session, flag, *branches, NO_NAMES)
        if is_bool and last and last[0] is (not stop):
            return value
        if is_bool and last and is_a(result, Staged):
            session.sizes.note_meaning(result, "or_" if stop else "and_", (value, last[0]))
        return result
    return value if flag is stop else _staged(session, parts[1:], stop)


def not_(value: Any) -> Any:
    """``not value``."""
    session = active()
    if session is not None:
        value = truth_of(session, value)
        if is_a(value, Staged):
            return session.scalar("not_", value)
    return not value
