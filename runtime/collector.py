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


__all__ = ["resting"]
