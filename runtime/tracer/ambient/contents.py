"""What an object that is no plain container holds, as something to compare: iterators, buffers, files in memory.

Equal before and after a path: nothing on the path advanced, wrote or read it.
"""

from __future__ import annotations

import array
import contextlib
import gc
import inspect
import io
import itertools
import logging
import sys
import types
import warnings
import weakref
import zlib
from typing import Any

import numpy

from runtime.kinds import is_a
from runtime.tracer.ambient.poison import Poison
from runtime.tracer.ambient.unasked import has_unasked, module_name

_SMALL = 1 << 16
"""Up to so many bytes a buffer is kept for comparison; beyond, its checksum is."""
_NESTED = 16
_OF_A_CALLABLE = type(iter(int, 1))
_SHELLS = (tuple, itertools._tee_dataobject)  # type: ignore[attr-defined]
"""In which iterators keep those that they advance."""
_BUFFERS = (bytearray, array.array, memoryview)


class _Asked:
    def __getitem__(self, place: int) -> None:
        raise IndexError


_LIST: list[None] = []
_DICT: dict[None, None] = {}
READING: tuple[type, ...] = (
    enumerate, zip, reversed, map, filter, itertools.chain, itertools.islice, type(iter(_LIST)), type(iter(())),
    type(iter(_DICT)), type(iter(_DICT.values())), type(iter(_DICT.items())), type(iter(frozenset())),
    type(iter(range(1))), type(iter("")), type(reversed(_LIST)), type(reversed(_DICT)), type(reversed(range(1))),
)  # fmt: skip
"""Iterators that only read what they iterate over."""
_ASKING = (reversed, type(iter(_Asked())))
"""Iterators that ask what they go over how long it is, which may be a user's method."""


_STATELESS = (list, dict, set, tuple, frozenset, types.FunctionType, types.MethodType)
"""Classes whose instances hold nothing but what can be asked of them."""


def notes_of(value: Any) -> tuple[int, ...]:
    """The ids of what an object keeps for itself alone, which whoever asks it fills: a logger notes which levels it
    records, also when torch logs in the middle of a trace."""
    return (id(vars(value).get("_cache")),) if issubclass(type(value), logging.Logger) else ()


def state_of(value: Any) -> Any:
    """What ``value`` holds now, None if nothing is known that it could hold.

    >>> it = iter([1, 2]); before = state_of(it); _ = next(it); state_of(it) == before
    False
    """
    kind = type(value)  # isinstance() would ask the object for its __class__
    if kind in _STATELESS:
        return None
    if issubclass(kind, _BUFFERS):
        return "bytes", len(value), _bytes(bytes(value))
    if issubclass(kind, numpy.ndarray):
        if value.dtype.hasobject:
            return "objects", value.shape, tuple(map(id, value.ravel().tolist()))
        return "array", value.shape, value.dtype.str, _bytes(value.tobytes())
    if issubclass(kind, io.IOBase):
        return _file(value)
    if is_iterator(value):
        return _iterator(value)
    return None


def is_iterator(value: Any) -> bool:
    """Whether this is an iterator of Python's own; one written in Python is an object like others."""
    kind = type(value)
    return kind is types.GeneratorType or (may_be_iterator(kind) and not has_unasked(value, "__dict__"))


def may_be_iterator(kind: type) -> bool:
    """Whether objects of a class are iterators of Python's own, if they have no attributes."""
    if kind is types.GeneratorType:
        return True
    if getattr(kind, "__next__", None) is None or getattr(kind, "__iter__", None) is None:
        return False
    return not issubclass(kind, (Poison, io.IOBase))


def inner(value: Any) -> list[Any]:
    """What ``value`` reads from: the iterators that a ``zip`` advances, what a weak reference refers to."""
    kind = type(value)
    if issubclass(kind, weakref.ref):
        return [value()]
    if issubclass(kind, numpy.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject else []
    if kind is types.GeneratorType:
        return [] if value.gi_frame is None else locals_of(value.gi_frame)
    return _advanced(value) if is_iterator(value) else []


def _advanced(iterator: Any) -> list[Any]:
    """The iterators that an iterator of Python's own advances, and the object whose method it calls."""
    found: list[Any] = []
    todo = gc.get_referents(iterator)
    while todo:
        part = todo.pop(0)
        if type(part) in _SHELLS:
            todo += gc.get_referents(part)
        elif type(part) is types.BuiltinFunctionType and type(iterator) is _OF_A_CALLABLE:
            found.append(part.__self__)
        elif getattr(type(part), "__next__", None) is not None and not issubclass(type(part), Poison):
            found.append(part)  # one that is written in Python as well
    return found


def locals_of(frame: types.FrameType) -> list[Any]:
    """The values of a frame's local variables."""
    names = frame.f_locals
    values = list(names.values())
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        names.clear()  # Python keeps this copy with the frame: it must keep nothing alive
    return values


def cells_of(function: types.FunctionType) -> list[Any]:
    """What a function's closure holds."""
    found = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not bound yet
            found.append(cell.cell_contents)
    return found


def _bytes(data: bytes) -> Any:
    return data if len(data) <= _SMALL else (zlib.crc32(data), zlib.adler32(data))


def _file(value: io.IOBase) -> Any:
    if value.closed:
        return ("closed",)
    if is_a(value, (io.StringIO, io.BytesIO)):
        return "memory", value.tell(), value.getvalue()
    try:
        return "file", value.tell()
    except (OSError, ValueError):  # not seekable, or detached
        return ("stream",)


def _iterator(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """``seen``: the iterators that advance this one."""
    kind = type(value)
    if kind is types.GeneratorType:
        frame = value.gi_frame
        if frame is None:
            return ("finished",)
        return "generator", frame.f_lasti, tuple(map(_mark, locals_of(frame)))
    hint = getattr(kind, "__length_hint__", None)
    if hint is not None and module_name(kind) == "builtins" and kind not in _ASKING:
        return "left", hint(value)
    found = parts(value)
    if not found:  # one that cannot be rebuilt holds what it goes over, and perhaps the last item
        found = _leaves(gc.get_referents(value))
    return "parts", tuple(_part(part, (*seen, id(value))) for part in found if not is_a(part, (tuple, dict)))


def _part(value: Any, seen: tuple[int, ...]) -> Any:
    if type(value) is list:  # one made for the items that are left, or kept for another round
        return tuple(map(_mark, value))
    if is_iterator(value):
        return _iterator(value, seen) if id(value) not in seen and len(seen) < _NESTED else None
    return _mark(value)


def _mark(value: Any) -> Any:
    """What a value is known by. Numbers are made anew all the time, one perhaps where another one was."""
    if type(value) in (int, str, bytes, complex):
        return type(value), value
    return ("float", value.hex()) if type(value) is float else id(value)


def parts(value: Any) -> list[Any]:
    """The parts that Python would rebuild an iterator from; nothing where it cannot say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            reduced = value.__reduce__()
        except (TypeError, AttributeError, RuntimeError):  # the last: what it goes over was changed
            return []
    return _leaves(list(reduced[1:]) if is_a(reduced, tuple) else [])


def _leaves(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if is_a(value, tuple):
            found += _leaves(value)
        else:
            found.append(value)
    return found
