"""How deep Python's calls may be inside each other while code is converted and traced.

A call of the user's is some twenty frames here, one of a module thirty, and a level of an expression six where its
tree is rewritten. So Python's recursion limit is counted from the user's innermost call on, and how many calls of the
user's are inside each other is counted apart: as many as Python would allow.

The limit is there for the C stack. [m: Python 3.11, a recursive function takes 0.9 KiB of it a call, nested modules
1.8, a method of a chain 0.7 where it is compiled.] Before 3.11 every frame takes some, so the sum of all is bounded.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 5_000
"""How many frames there may be inside the user's innermost call, if Python's own limit is not higher."""

CONVERTING = 20_000
"""How many there may be where a function's tree is rewritten."""

CALLS = 4_000
"""The most calls of the user's inside each other, whatever Python's limit is."""

MOST_FRAMES = 400_000 if sys.version_info >= (3, 11) else 8_000
"""The highest limit that is set."""


def users() -> int:
    """The limit that there is where nothing is converted or traced."""
    return _limits.users()


def most_calls() -> int:
    """How many calls of the user's there may be inside each other."""
    return min(users(), CALLS)


@contextmanager
def room(frames: int | None = None) -> Iterator[None]:
    """While the block runs, there may be so many frames inside it; by default ``FRAMES``."""
    frame: types.FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    with _limits.raised(depth + (FRAMES if frames is None else frames)):
        yield


class _Limits:
    """Python's recursion limit, which is one for all threads: the user's, or the highest that is asked for now. Where
    somebody else has set it meanwhile, that is the user's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = self._set_to = sys.getrecursionlimit()
        self._asked: list[int] = []

    def users(self) -> int:
        """The user's."""
        with self._lock:
            self._look()
            return self._users

    @contextmanager
    def raised(self, wanted: int) -> Iterator[None]:
        """While the block runs, the limit is at least ``wanted``, if that may be."""
        wanted = min(wanted, MOST_FRAMES)
        with self._lock:
            self._look()
            self._asked.append(wanted)
            self._set()
        try:
            yield
        finally:
            with self._lock:
                self._look()
                self._asked.remove(wanted)
                self._set()

    def _look(self) -> None:
        now = sys.getrecursionlimit()
        if now != self._set_to:
            self._users = self._set_to = now

    def _set(self) -> None:
        self._set_to = max(self._users, *self._asked, 0)
        sys.setrecursionlimit(self._set_to)


_limits = _Limits()
