"""Writes to NumPy's arrays of the trace: ``a[key] = value``, ``a += value``; and what shows their memory: ``a[1:]``."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy
import torch

from dy2static.operators.shared.staging import Session, Staged, any_staged
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.recording import numpy_calls
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyCopy, NumpyScalar, dtype_of


def is_view(session: Session, array: NumpyArray, key: Any) -> bool:
    """Whether ``array[key]`` is in the array's memory: the key has slices that go forward, and fewer numbers than the
    array has dimensions."""
    parts = key if type(key) is tuple else (key,)
    if not _is_basic(key) or any(is_a(one, (numpy.ndarray, NumpyArray, Staged)) for one in parts):
        return False
    for one in parts:
        if type(one) is slice and any(is_a(bound, Staged) for bound in (one.start, one.stop, one.step)):
            return False
    numbers = sum(type(one) is int for one in parts)
    places = sum(not (one is None or one is ...) for one in parts)
    return (numbers < session.fake(array.tensor).dim() or ... in parts) and places <= session.fake(array.tensor).dim()


def by_numpy(session: Session, array: NumpyArray, key: Any, value: Any) -> torch.Tensor:
    """What an array holds once NumPy has done ``array[key] = value``.

    Raises:
        TraceError: D2S213, NumPy is given what no Program carries, or can do it with no array that was tried.
    """
    if is_a(array, NumpyCopy) or any(is_a(one, NumpyCopy) for one in (value, key)):
        raise session.error("an item of a NumPy array that is only known while the Program runs is written",
                            code="D2S213", hint="Use np.where, or write the tensor.")
    written = numpy_calls.record("ndarray.__setitem__", (array, key, value), {})
    return written.tensor


def of_tensors(session: Session, array: NumpyArray, key: Any, value: Any) -> tuple[torch.Tensor, Any, Any] | None:
    """The tensor, key and value to write for ``array[key] = value``; None where NumPy has to do that.

    Raises:
        Exception: What NumPy raises for such a key or value.
    """
    if is_a(array, NumpyScalar):
        _theirs(operator.setitem, dtype_of(array).type(), key, 0)
    if type(key) is list and _are_places(session, array, key):
        key = numpy.array(key)
    elif not _is_basic(key):
        return None
    if is_a(array, NumpyCopy) or not _is_value(value) or not _is_tried(session, array, key, value):
        return None
    if type(value) is not complex and is_a(value, (bool, int, float, numpy.generic)):  # NumPy cuts and rounds
        value = _as_written(array, value)
    if not _fits(array, value):
        return None
    if is_a(value, (numpy.ndarray, numpy.generic)):
        value = torch.from_numpy(numpy.array(value))
    elif is_a(value, NumpyScalar):
        value = value.tensor
    elif is_a(value, NumpyArray):
        value = value.tensor.clone()  # NumPy writes memory that overlaps as if it did not
    if is_a(value, torch.Tensor) and type(key) is numpy.ndarray and key.dtype.kind == "i":
        value = value.to(array.tensor.dtype)  # torch writes places in no other dtype
    key = tuple(map(_as_torch, key)) if type(key) is tuple else _as_torch(key)
    return array.tensor.data, key, value  # autograd does not see what NumPy writes


def _as_written(array: NumpyArray, value: Any) -> Any:
    """What an array holds, once a known number was written to it."""
    one = numpy.zeros(1, dtype_of(array))
    one[0] = value
    return one[0]


def _is_tried(session: Session, array: NumpyArray, key: Any, value: Any) -> bool:
    """Whether such a write is right for arrays of these sizes: not, where only the run knows, or NumPy warns.

    Raises:
        Exception: What NumPy raises for arrays of these sizes.
    """
    parts = key if type(key) is tuple else (key,)
    masks = any(is_a(one, NumpyArray) for one in parts)  # of the run
    several = is_a(value, (NumpyArray, numpy.ndarray)) and not is_a(value, NumpyScalar)
    bounds = [bound for one in parts if type(one) is slice for bound in (one.start, one.stop)]
    if masks and several or several and any(is_a(one, Staged) for one in bounds):  # how many items there are
        return False
    is_open = numpy_calls.is_open(session, array) or is_a(value, NumpyArray) and numpy_calls.is_open(session, value)
    if is_open and not _is_whole(session, array, key, value):
        return False
    sample = _sample(session, array)
    given = _sample(session, value) if is_a(value, NumpyArray) else 0 if is_a(value, Staged) else value
    places = tuple(_sample(session, one) == 0 if is_a(one, NumpyArray)
                   else 0 if is_a(one, Staged)
                   else slice(None) if type(one) is slice and any_staged([one.start, one.stop]) else one
                   for one in parts)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            sample[places] = given
        except RuntimeWarning:  # too big a number
            return False
        except Exception:
            _theirs(operator.setitem, sample, places if type(key) is tuple else places[0], given)
    return True


def _is_whole(session: Session, array: NumpyArray, key: Any, value: Any) -> bool:
    """Whether the key takes all of the array, or a mask of its very size, and the value is one number, or for all of
    the array as many."""
    shape = numpy_calls.sizes(session, array)
    masked = is_a(key, NumpyArray) and numpy_calls.sizes(session, key) == shape
    if not masked and key is not ... and key != slice(None):
        return False
    if is_a(value, NumpyArray) and not is_a(value, NumpyScalar):
        return not masked and numpy_calls.sizes(session, value) == shape
    return not is_a(value, numpy.ndarray)


def _sample(session: Session, array: NumpyArray) -> Any:
    """Zeros of an array's sizes and dtype; what only the run knows of the sizes is the same for all arrays."""
    shape = numpy_calls.some_shape(session, array)
    return numpy.zeros(shape, dtype_of(array))[() if is_a(array, NumpyScalar) else ...]


def _are_places(session: Session, array: NumpyArray, key: list[Any]) -> bool:
    """Whether a list names places of the first dimension, each once: of two writes to one, NumPy keeps the last."""
    size = session.fake(array.tensor).shape[0] if session.fake(array.tensor).dim() else 0
    known = type(size) is int and bool(key) and all(type(one) is int and -size <= one < size for one in key)
    return known and len({one % size for one in key}) == len(key)


def _as_torch(key: Any) -> Any:
    if type(key) is numpy.ndarray:
        return torch.from_numpy(key.copy())
    return key.tensor if is_a(key, NumpyArray) else key


def _is_basic(key: Any) -> bool:
    """Whether a key says places that torch writes as NumPy does: whole numbers, slices that go forward, masks."""
    parts = key if type(key) is tuple else (key,)
    for one in parts:
        if type(one) is slice:
            bounds = (one.start, one.stop, one.step)
            if not all(bound is None or _is_int(bound) for bound in bounds) or (
                    one.step is not None and not (type(one.step) is int and one.step > 0)):  # fmt: skip
                return False
        elif is_a(one, NumpyArray):
            if is_a(one, (NumpyScalar, NumpyCopy)) or one.tensor.dtype is not torch.bool or len(parts) > 1:
                return False
        elif type(one) is numpy.ndarray:
            if one.dtype != numpy.bool_ or len(parts) > 1:
                return False
        elif not (one is None or one is ... or _is_int(one)):
            return False
    return True


def _is_int(value: Any) -> bool:
    return type(value) is int or is_a(value, Staged) and value.kind == "int"


def _is_value(value: Any) -> bool:
    kinds = (bool, int, float, complex, str, Staged, numpy.generic, numpy.ndarray, NumpyArray, type(None))
    return is_a(value, kinds) and not is_a(value, NumpyCopy)


def _fits(array: NumpyArray, value: Any) -> bool:
    """Whether a value is written to an array as it is, or rounded to its floats."""
    dtype = dtype_of(array)
    if is_a(value, Staged):
        to_float = dtype.kind == "f" and dtype.itemsize >= 4
        return value.kind == "bool" or (value.kind == "int" and (to_float or dtype == "i8")) or (
            value.kind == "float" and to_float)
    if type(value) in (bool, int, float):
        return type(value) is not float or dtype.kind in "fcb"
    if is_a(value, (NumpyArray, numpy.ndarray)) and not is_a(value, NumpyCopy):
        given = dtype_of(value) if is_a(value, NumpyArray) else value.dtype
        return numpy.can_cast(given, dtype, "same_kind") and given.kind in "biufc" and dtype.kind in "biufc"
    return is_a(value, numpy.generic) and numpy.can_cast(value.dtype, dtype, "safe")


def augmented(session: Session, op: str, array: NumpyArray, value: Any, result: Any) -> NumpyArray:
    """``array <op> value``, of which NumPy has computed ``result``: the array holds it then.

    Raises:
        TypeError: In NumPy's words: the result's dtype is of another kind.
        TraceError: D2S213, it has other sizes.
    """
    if not is_a(result, NumpyArray) or is_a(array, NumpyCopy):
        raise session.error(f"'{op}' of a NumPy array that is only known while the Program runs", code="D2S213",
                            hint="Write the operation out, and bind its result.")
    if not numpy.can_cast(dtype_of(result), dtype_of(array), "same_kind"):
        _theirs(getattr(operator, _IN_PLACE[op]), numpy.zeros(1, dtype_of(array)), numpy.zeros(1, dtype_of(result)))
    if numpy_calls.sizes(session, array) != numpy_calls.sizes(session, result):
        raise session.error(f"'{op}' of a NumPy array and one of other sizes", code="D2S213",
                            hint="Write the operation out, and bind its result.")
    array.tensor.data.copy_(result.tensor)
    return array


_IN_PLACE = {
    "+=": "iadd", "-=": "isub", "*=": "imul", "@=": "imatmul", "/=": "itruediv", "//=": "ifloordiv", "%=": "imod",
    "**=": "ipow", "<<=": "ilshift", ">>=": "irshift", "&=": "iand", "^=": "ixor", "|=": "ior",
}  # fmt: skip


@acts_for_user
def _theirs(function: Any, *args: Any) -> Any:
    return function(*args)


__all__ = ["augmented", "by_numpy", "is_view", "of_tensors"]
