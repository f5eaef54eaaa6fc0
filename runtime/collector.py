"""Python's collector of cycles rests while much is made of which it would find nothing."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """Without Python's collector, which goes through all that is new again and again, and at times through all there
    is: a third of the time of an import of many modules, or of a conversion, whose trees die with it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


ALLOCATIONS = 100_000
"""After so many new containers the collector looks at them while a function is traced; at Python's own 700, a fifth of
the time of a trace goes to it. Looking at so many takes some milliseconds, and they some ten megabytes."""


@contextlib.contextmanager
def eased() -> Iterator[None]:
    """With a collector that comes less often: a trace makes many objects and keeps nearly all of them to its end."""
    before = gc.get_threshold()
    if not 0 < before[0] < ALLOCATIONS:  # 0 is never
        yield
        return
    mine = ALLOCATIONS, *before[1:]
    gc.set_threshold(*mine)
    try:
        yield
    finally:
        if gc.get_threshold() == mine:  # what is traced may have set another
            gc.set_threshold(*before)


__all__ = ["ALLOCATIONS", "eased", "resting"]
