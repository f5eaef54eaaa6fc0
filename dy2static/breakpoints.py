"""``breakpoint()`` in code that is converted: the call runs as the user wrote it, and stops there with real values.

A trace knows no values, and its code stands in a generated file. So a trace that meets a breakpoint ends, and leaves
nothing; the `StaticFunction` that was called runs its original instead (docs/debugging.md).
"""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType
from typing import Any, NoReturn

from runtime.tracer.ambient.unasked import unasked


class RunsPlain(BaseException):
    """A trace met a breakpoint: raised there, and where the trace ends, if a handler of the user's took the first."""


_met: weakref.WeakSet[Any] = weakref.WeakSet()


def end_trace(session: Any) -> NoReturn:
    """End a trace at a breakpoint."""
    _met.add(session)
    raise RunsPlain


def check(session: Any) -> None:
    """Raise RunsPlain if the trace met a breakpoint."""
    if session in _met:
        raise RunsPlain


def is_breakpoint(function: Any) -> bool:
    """Whether a function is ``breakpoint`` or ``pdb.set_trace``."""
    return function is breakpoint or (
        unasked(function, "__name__", "") == "set_trace" and unasked(function, "__module__", "") == "pdb"
    )


def stop_at(frame: FrameType, *args: Any, **kwargs: Any) -> Any:
    """``breakpoint()`` outside a trace, of code that stands in ``frame``."""
    if sys.breakpointhook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT", "pdb.set_trace") not in (
            "", "pdb.set_trace"):  # fmt: skip
        return sys.breakpointhook(*args, **kwargs)
    import pdb

    return pdb.Pdb().set_trace(frame)


__all__ = ["RunsPlain", "check", "end_trace", "is_breakpoint", "stop_at"]
