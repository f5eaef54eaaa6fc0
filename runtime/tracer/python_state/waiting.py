"""Generators that wait in a ``try`` or ``with`` of their own: what these do at their end is done when Python ends them.

    def numbers(x):
        try:
            yield x
        finally:
            print("left")             first = next(numbers(x))

Python ends a generator that was left half-way as soon as nothing refers to it any more. While tracing this is the same
moment where one and the same path begins and leaves it. The tracer keeps what a path may have to get back, so it may
refer to a generator for longer than the program does, and it takes back what a path has bound. All that is refused.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient.objects import attributes
from runtime.tracer.ambient.walks import walk
from runtime.tracer.python_state.journal import Frame

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


@dataclass(eq=False)
class Waiting:
    """A generator that is inside of a ``try`` or ``with``."""

    path: Frame
    """The path that came there."""
    location: Location | None
    by_with: bool
    """Whether a ``with`` statement waits for it (``contextlib.contextmanager``), which ends it."""


def begin(session: Session, by_with: bool) -> Waiting:
    """A generator comes to a ``try`` or ``with`` that it may wait in."""
    waiting = Waiting(session.journal.frames[-1], session.location(), by_with)
    session.code.waiting.append(waiting)
    return waiting


def end(session: Session, waiting: Waiting) -> None:
    """It has left it."""
    if waiting in session.code.waiting:
        session.code.waiting.remove(waiting)


def require_none(session: Session, path: Frame | None = None) -> None:
    """Refuse where a generator waits, or was ended at a moment that is not eager's; ``path``: of those that it began.

    Raises:
        TraceError: D2S266.
    """
    places = [one.location for one in session.code.waiting if path is None or one.path is path]
    places += session.code.misplaced
    if places:
        raise session.error(
            "a generator is left half-way inside of a try or with statement, and when Python ends it, which runs the "
            "rest of that, is only known while the Program runs", code="D2S266", location=places[-1],
            hint="Take all its items, or call its close() on the same path.")


def end_path(session: Session, names: Iterable[tuple[Any, Any]]) -> None:
    """Call where a path ends: what waits has to be older, and the path may not be what lets go of it.

    ``names``: local variables as they were before it, and as it leaves them.

    Raises:
        TraceError: D2S266.
    """
    path = session.journal.frames[-1]
    require_none(session, path)
    if all(one.by_with for one in session.code.waiting):
        return
    changed = [before for before, after in names if before is not after]
    changed += [before for place, before in path.items() if place.kind == "content" or place.get() is not before]
    if any(is_a(one, Iterator) for one in walk(changed, _parts, _DEEPEST)):
        require_none(session)


_DEEPEST = 4
_PLAIN = (torch.Tensor, torch.nn.Module, type, types.ModuleType, types.FunctionType, str, int, float)


def _parts(value: Any) -> Iterable[Any]:
    if is_a(value, (list, tuple, set, frozenset)):
        return list(value)
    if is_a(value, dict):
        return list(value.values())
    return () if is_a(value, _PLAIN) else attributes(value).values()


def require_none_to_unwind(session: Session) -> None:
    """Refuse to raise where a generator waits that no ``with`` statement ends: Python keeps it until the exception is
    forgotten.

    Raises:
        TraceError: D2S266.
    """
    if any(not one.by_with for one in session.code.waiting):
        require_none(session)


__all__ = ["Waiting", "begin", "end", "end_path", "require_none", "require_none_to_unwind"]
