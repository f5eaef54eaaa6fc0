"""What a debugger does to a program that it looks at: it reads the local variables of every frame, line by line.

On Python before 3.13 that leaves one more reference to each value in a dict of the frame, until the next look.

    with looked_at():
        converted(x)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

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
