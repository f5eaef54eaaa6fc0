"""Memory of Python's own objects that tensors of the trace show: ``torch.from_numpy(a)``, ``torch.frombuffer(b)``.

A run makes such a tensor anew, of what the object held when the trace made it. That is right while neither the tensor
nor the object is written, and while the object does not leave the function. Where one of these happens, the trace
begins again, and the array is one of the Program's from where it is made (``Findings.arrays``); for anything but an
array that was made inside it is an error.
"""

from __future__ import annotations

import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import torch

from runtime import torch_internals
from runtime.ir import Location
from runtime.kinds import is_a
from runtime.ops.host_numpy import kind_of, shareable
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.ambient.session_parts import ITEMS, SessionPart, state

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

WITH_MEMORY = (numpy.ndarray, bytearray, array.array, memoryview)
"""Objects of Python's and NumPy's whose memory a tensor can show."""


@dataclass(eq=False)
class Shown:
    """Memory of an object's that a tensor of the trace shows."""

    tensor: torch.Tensor
    real: torch.Tensor
    """What torch made of the object; it keeps the memory alive."""
    owner: Any
    held: bytes
    """What the memory held then."""
    where: Location | None


@dataclass(eq=False)
class HostMemory(SessionPart):
    """Such memory, and where arrays were made."""

    shown: list[Shown] = state(ITEMS, list)
    copied: list[Shown] = state(ITEMS, list)
    """Memory of which the trace has read a copy."""
    made: dict[int, tuple[Any, Location | None]] = state(ITEMS, dict)
    """Arrays that the trace made, by identity, and where."""


def owner_of(value: Any) -> Any:
    """The object that has the memory which an array or memoryview shows; any other object is its own."""
    while is_a(value, (numpy.ndarray, memoryview)):
        base = value.base if is_a(value, numpy.ndarray) else value.obj
        if base is None:
            break
        value = base
    return value


def shares(real: torch.Tensor, value: Any) -> bool:
    """Whether a tensor shows memory of an array or buffer."""
    with torch_internals.no_modes():
        if not real.numel():
            return False
        first, last = _extent(value)
        return first <= real.data_ptr() < last


def note(session: Session, tensor: torch.Tensor, real: torch.Tensor, value: Any) -> None:
    """A tensor of the trace stands for ``real``, which shows memory of ``value``."""
    session.host.shown.append(Shown(tensor, real, owner_of(value), _content(real), session.location()))


def note_copy(session: Session, value: numpy.ndarray[Any, Any]) -> None:
    """The trace reads a copy of an array at a place that only the run knows: its memory may not be written from now on.

    A run would read what was written too late, and where the place is out of range it would not have come to the write.
    """
    owner = owner_of(value)
    if is_a(owner, numpy.ndarray) and shareable(owner) and not owner.dtype.hasobject and kind_of(owner):
        with torch_internals.no_modes():
            real = torch.from_numpy(owner)
        session.host.copied.append(Shown(real, real, owner, _content(real), session.location()))


def require_apart(session: Session) -> None:
    """At the end of the function: no memory that a tensor shows was written, through it or in Python.

    Raises:
        Restart: Arrays are arrays of the Program then.
        TraceError: D2S222.
    """
    for one in session.host.shown:
        if session.info(one.tensor).storage.written:
            raise _settled(session, one, "is written through a tensor that shows its memory")
        if _content(one.real) != one.held:
            raise _settled(session, one, "is written after a tensor was made that shows its memory")
    for one in session.host.copied:
        if _content(one.real) != one.held:
            raise _settled(session, one, "is written after a part of it was read at a place that only the run knows")


def require_unshown(session: Session, value: Any) -> None:
    """For an object that leaves the function: no tensor shows its memory.

    Raises:
        Restart: It is an array of the Program then.
        TraceError: D2S222.
    """
    if not session.host.shown or not is_a(value, WITH_MEMORY):
        return
    first, last = _extent(value)
    for one in session.host.shown:
        with torch_internals.no_modes():
            memory = one.real.untyped_storage()
            begins = memory.data_ptr()
        if first < begins + memory.nbytes() and begins < last:
            raise _settled(session, one, "leaves the function, and a tensor shows its memory")


def require_of_program(session: Session, value: Any) -> None:
    """For an array that is written on some paths: what has its memory is one of the Program's, if the trace made it.

    Raises:
        Restart: So that it is.
    """
    _, where = session.host.made.get(id(owner_of(value)), (None, None))
    if where is not None and where not in session.call.known.arrays:
        raise session.restart(Findings(arrays=frozenset((where,))))


def _settled(session: Session, one: Shown, why: str) -> Exception:
    require_of_program(session, one.owner)
    return session.error(
        f"a {type(one.owner).__name__} {why}", code="D2S222", location=one.where,
        hint="Make the tensor with torch.tensor(), or .clone() it.")


def _extent(value: Any) -> tuple[int, int]:
    """Where the memory that an object shows begins and ends."""
    if not is_a(value, numpy.ndarray):
        value = numpy.frombuffer(value, dtype=numpy.uint8)
    first = last = int(value.__array_interface__["data"][0])
    for size, stride in zip(value.shape, value.strides):
        first, last = first + min((size - 1) * stride, 0), last + max((size - 1) * stride, 0)
    return first, last + value.itemsize


def _content(real: torch.Tensor) -> bytes:
    with torch_internals.no_modes():
        return real.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


__all__ = [
    "WITH_MEMORY", "HostMemory", "Shown", "note", "owner_of", "require_apart", "require_of_program", "require_unshown",
    "shares",
]  # fmt: skip
