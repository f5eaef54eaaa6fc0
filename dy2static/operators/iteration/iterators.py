"""Iterators that are older than the path being traced: both paths run, so advancing one there cannot be undone.

    it = iter(rows)
    if x.sum() > 0:
        first = list(it)       # refused: what is left of ``it`` would depend on the path
"""

from __future__ import annotations

import builtins
from typing import Any

from dy2static.operators.iteration.generator import require_not_left
from dy2static.operators.shared.staging import Session
from runtime.tracer.values import unjournaled

_KEEPING = frozenset(
    id(function) for function in (
        isinstance, issubclass, id, type, callable, hasattr, getattr, setattr, repr, str, print, iter, hash, bool, len,
        builtins.slice,
    )
)  # fmt: skip
_KEEPING_METHODS = frozenset({"append", "insert", "add", "setdefault", "appendleft", "__setitem__", "index", "remove"})


def keeps(f: Any) -> bool:
    """Whether a builtin takes an iterator without advancing it."""
    return id(f) in _KEEPING or getattr(f, "__name__", "") in _KEEPING_METHODS


def note_given(session: Session, args: tuple[Any, ...]) -> None:
    """Arguments of a builtin that may advance them.

    Raises:
        TraceError: One is an iterator that is older than the path being traced, or that was left at an open place.
    """
    for arg in args:
        require_not_left(session, arg)
        unjournaled.note_advanced(session, arg)
        unjournaled.require_own(session, arg)


def require_known(session: Session, iterator: Any) -> None:
    """Refuse to advance an iterator by name on a staged path.

    Raises:
        TraceError: The trace is on a path that only some inputs take.
    """
    if len(session.journal.frames) > 1:
        raise unjournaled.advanced(session)
