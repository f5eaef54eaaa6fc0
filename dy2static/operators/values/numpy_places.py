"""Parts of NumPy's arrays at places that only the run knows: ``a[i, j]``, ``a[i, :]``, ``a[i:j]``.

A part is read from the tensor in whose memory the array is: a copy of one item where each dimension has a number, else
a view, so that it sees what is written later, as the array sees what is written to it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy
import torch

from dy2static.operators.calls import numpy_arrays
from dy2static.operators.calls.torch_values import to_torch
from dy2static.operators.shared.staging import Session, Staged, any_staged
from dy2static.operators.values import tensor_index
from runtime.kinds import is_a
from runtime.tracer.ambient.catching import require_uncaught_type
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.memory import host_memory
from runtime.tracer.recording import numpy_calls, reads
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyCopy, NumpyScalar, dtype_of

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""The dtypes of tensors that count as an index of an array, as ``__index__`` says."""


def settled(session: Session, key: Any) -> Any:
    """The key of an array, with Python's numbers for tensors and scalars of NumPy's that are whole numbers."""
    if type(key) is tuple:
        return tuple(settled(session, one) for one in key)
    if is_a(key, torch.Tensor) and not key.dim() and key.dtype in _WHOLE:
        return reads.index(session, key)
    if is_a(key, NumpyScalar) and dtype_of(key).kind in "iu":
        return numpy_arrays.number(session, key)
    return key


def read(session: Session, array: Any, key: Any) -> Any:
    """``array[key]``, where something in the key is only known while the Program runs; None where NumPy itself is to
    be asked for that.

    Raises:
        IndexError: There are too many indices.
        Restart: So that an array which the trace made is one of the Program's.
    """
    parts = key if type(key) is tuple else (key,)
    if not any_staged([key]):
        return None
    if any(type(one) is list or is_a(one, (numpy.ndarray, NumpyArray)) for one in parts):
        if not _mixed(parts):
            return None
        return numpy_arrays.item(session, array, tuple(_as_place(session, one) for one in parts))
    if not all(map(_is_basic, parts)):
        return None
    require_inside(session, array, key)
    is_item = len(parts) == _rank(session, array) and all(map(_is_number, parts))
    if is_a(array, numpy.ndarray):
        if not numpy_calls.is_carried(array):
            return None
        array = _of_outside(session, array, is_item)
    forward = tuple(slice(None) if _goes_back(one) else one for one in parts)
    tensor = tensor_index.read(session, array.tensor, forward)
    if is_item:
        return NumpyScalar(tensor.clone())
    part = type(array)(tensor)
    if forward == parts:
        return part
    back = tuple(one if one is ... or _goes_back(one) else slice(None) for one in parts if not _is_number(one))
    return numpy_arrays.item(session, part, back)


def _of_outside(session: Session, array: numpy.ndarray[Any, Any], is_item: bool) -> NumpyArray:
    """An array that Python has, as one of the Program's: guards hold its content against later calls.

    Parts of it that are no items may not leave, nor be written: what they are views of is not in the Program.
    """
    tensor = torch.from_numpy(array.copy())
    if is_item:
        return NumpyArray(tensor)
    host_memory.require_of_program(session, array)
    return NumpyCopy(tensor)


def require_inside(session: Session, array: Any, key: Any) -> None:
    """Each number of a key says a place that the array has: in NumPy's order, and in its words.

    Raises:
        IndexError: One that is known does not, or there are too many.
    """
    parts = key if type(key) is tuple else (key,)
    shape = session.fake(array.tensor).shape if is_a(array, NumpyArray) else array.shape
    used = sum(one is not None and one is not ... for one in parts)
    if used > len(shape) or sum(one is ... for one in parts) > 1 or is_a(array, NumpyScalar):
        like = numpy.zeros([1] * len(shape))[() if is_a(array, NumpyScalar) else ...]
        theirs(operator.getitem, like, tuple(_known(one) for one in parts))
    axis = 0
    for one in parts:
        if one is None:
            continue
        if one is ...:
            axis += len(shape) - used
            continue
        if _is_number(one):
            _require_place(session, one, axis, shape[axis])
        axis += 1


def _require_place(session: Session, place: Any, axis: int, size: Any) -> None:
    size = size if type(size) is int else session.sizes.staged(size)
    if type(place) is int and type(size) is int:
        if not -size <= place < size:
            theirs(operator.getitem, numpy.zeros([1] * axis + [size]), (0,) * axis + (place,))
        return
    inside = session.scalar("and_", session.scalar("ge", place, session.scalar("neg", size) if is_a(
        size, Staged) else -size), session.scalar("lt", place, size))
    session.emit("assert", [
        session.operand(inside), "index ", session.operand(place), f" is out of bounds for axis {axis} with size ",
        session.operand(size) if is_a(size, Staged) else str(size),
    ], attrs={"exception": "IndexError", "message": None})  # fmt: skip
    require_uncaught_type(session, IndexError)


def _known(part: Any) -> Any:
    """A part of a key, with numbers for those that only the run knows."""
    if type(part) is slice:
        return slice(None)
    return 0 if is_a(part, Staged) else part


def _rank(session: Session, array: Any) -> int:
    return session.fake(array.tensor).dim() if is_a(array, NumpyArray) else array.ndim


def _is_number(part: Any) -> bool:
    return type(part) is int or is_a(part, Staged) and part.kind == "int"


def is_basic(key: Any) -> bool:
    """Whether a key has numbers, slices, ``None`` and ``...`` only."""
    return all(map(_is_basic, key if type(key) is tuple else (key,)))


def _is_basic(part: Any) -> bool:
    if type(part) is not slice:
        return part is None or part is ... or _is_number(part)
    bounds = (part.start, part.stop)
    if not all(one is None or _is_number(one) for one in bounds) or not (part.step is None or type(part.step) is int):
        return False
    return part.step is None or part.step > 0 or part.step < 0 and not any_staged(bounds)


def _goes_back(part: Any) -> bool:
    return type(part) is slice and part.step is not None and part.step < 0


def _mixed(parts: tuple[Any, ...]) -> bool:
    """Whether numbers of the run stand beside lists or arrays of places: NumPy takes them for such."""
    return all(not any_staged([one]) or _is_number(one) or type(one) is list for one in parts) and any(
        is_a(one, Staged) for one in parts)


def _as_place(session: Session, part: Any) -> Any:
    """A number of the run as the array of places for which NumPy takes it beside others."""
    if not is_a(part, Staged):
        return part
    return NumpyArray(torch.scalar_tensor(to_torch(session, part), dtype=torch.int64))


__all__ = ["is_basic", "read", "require_inside", "settled"]
