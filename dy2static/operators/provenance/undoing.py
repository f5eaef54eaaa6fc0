"""What code that is not converted may do to buffers, files and iterators, where a trace that fails leaves nothing.

No journal rolls these back. Where a function may run as plain Python instead, buffers are put back from a copy, and
code that could advance an iterator or a file is not run at all.

    numpy.copyto(array, 0.0)     copied before; put back, and refused
    json.dump(obj, file)         refused before it writes
"""

from __future__ import annotations

import array
import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.tracer.ambient import contents

Undo = Callable[[], None]


def undos(session: Session, values: Iterable[Any]) -> dict[int, Undo]:
    """By identity of a value: what puts back what it holds now.

    Raises:
        TraceError: D2S278, for a value that nothing could put back, where a Program for one call is of no use.
    """
    found: dict[int, Undo] = {}
    for value in values:
        undo = _undo(value)
        if undo is not None:
            found[id(value)] = undo
        elif session.call.may_be_for_one_call:
            continue
        elif is_a(value, io.IOBase) or contents.is_iterator(value):
            session.once(f"code that is not converted is given a {type(value).__name__}")
    return found


def _undo(value: Any) -> Undo | None:
    if is_a(value, numpy.ndarray):
        if not value.flags.writeable:
            return _nothing
        kept = value.copy()

        def put_back() -> None:
            value[...] = kept

        return put_back
    if is_a(value, (bytearray, array.array)):
        held = value[:]

        def put_back_items() -> None:
            value[:] = held  # type: ignore[assignment]  # each gets items of its own kind

        return put_back_items
    if is_a(value, memoryview):
        if value.readonly:
            return _nothing
        data = bytes(value)

        def put_back_bytes() -> None:
            value.cast("B")[:] = data

        return put_back_bytes
    return None


def _nothing() -> None:
    """Nothing can have changed."""


__all__ = ["undos"]
