"""What runs draw from the process: kept, and given again.

    drawn = []
    with keeping(drawn): ...          random numbers and times go into the list
    with giving_again(drawn): ...     they come out of it, in order, and the streams stay where they are

Gradients of gradients run a Program a second time: its numbers must be those of the first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Here(threading.local):
    """This thread's state."""

    kept: list[Any] | None = None
    """Where what is drawn is kept; None: nowhere."""
    given: Iterator[Any] | None = None
    """What is given in place of drawing; None: nothing, the streams are drawn from."""


here = Here()


@contextmanager
def keeping(drawn: list[Any]) -> Iterator[None]:
    """Put all that is drawn in the block into a list."""
    before, here.kept = here.kept, drawn
    try:
        yield
    finally:
        here.kept = before


@contextmanager
def giving_again(drawn: list[Any] | None) -> Iterator[None]:
    """In the block, give what was drawn before in place of drawing; None: draw."""
    before, here.given = here.given, None if drawn is None else iter(drawn)
    try:
        yield
    finally:
        here.given = before


__all__ = ["giving_again", "here", "keeping"]
