"""Who else refers to a program's objects must not matter: a debugger that looks on, or anything at all.

A debugger reads the local variables of every frame, line by line.

On Python before 3.13 that leaves one more reference to each value in a dict of the frame, until the next look.

    with looked_at():
        converted(x)

The tracer asks two questions of reference counts, and both only save what need not be recorded: whether a variable is
all that refers to a list (``branches.is_alone``), and whether anything refers to an object whose places a path stored
to (``Journal.close``). ``all_held`` answers both for the worst.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from unittest import mock

from runtime.tracer.control import cond, while_loop
from runtime.tracer.python_state.journal import Journal

_LIBRARIES = f"{os.sep}site-packages{os.sep}", os.path.dirname(os.__file__) + os.sep


def look(frame: FrameType, event: str, arg: Any) -> Any:
    """A trace function that reads ``f_locals``: at every line of the user's code and ours, in libraries at calls."""
    frame.f_locals  # looking is the point
    return None if any(part in frame.f_code.co_filename for part in _LIBRARIES) else look


@contextmanager
def looked_at() -> Iterator[None]:
    """While the block runs, a debugger looks at all frames, those around it included."""
    before = sys.gettrace()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        frame.f_locals
        frame = frame.f_back
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def all_held() -> Iterator[None]:
    """While the block runs, the tracer takes every object for one that something else refers to."""
    with (
        mock.patch.object(cond, "is_alone", lambda *args: False),
        mock.patch.object(while_loop, "is_alone", lambda *args: False),
        mock.patch.object(Journal, "is_dropped", lambda *args: False),
    ):
        yield
