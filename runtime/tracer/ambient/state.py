"""Which tracing session this thread is in."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime.tracer.ambient.leaked import leaked

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class _Local(threading.local):
    session: Session | None = None


_local = _Local()


def active() -> Session | None:
    """The session this thread is tracing in, or None."""
    return _local.session


def current() -> Session:
    """The session this thread is tracing in.

    Raises:
        TraceError: A staged value outlived its trace and is used outside one.
    """
    if _local.session is None:
        raise leaked()
    return _local.session


def enter(session: Session | None) -> Session | None:
    """Make ``session`` this thread's session; returns the one before."""
    before, _local.session = _local.session, session
    return before


@contextlib.contextmanager
def away() -> Iterator[None]:
    """No session for a while: what runs in here is no code that is traced (an operator's kernel written in Python)."""
    before = enter(None)
    try:
        yield
    finally:
        enter(before)
