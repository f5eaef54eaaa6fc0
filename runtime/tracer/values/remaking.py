"""Objects that the function made, and how each call makes its own.

What a list, dict, dataclass or ordinary object is made of, ``results`` takes apart itself. Here are all others: each is
described by a kind, what is named (a class, a template) and parts, which may hold tensors of the trace; ``remake`` goes
the other way.
"""

from __future__ import annotations

import array
import collections
import copy
import copyreg
import datetime
import decimal
import io
import math
import re
import struct
import types
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from runtime.kinds import is_a
from runtime.ops import exception_fields
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.objects import slots_of
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import MISSING, Place, python_kind
from runtime.tracer.values import containers
from runtime.tracer.values.structure import is_container

_COPIED = (bytearray, array.array, numpy.ndarray, io.StringIO, io.BytesIO)
"""What a copy of is another one with the same content, and nothing of the user's."""
_MEMORY = (bytearray, array.array, bytes, memoryview)
"""Objects, other than arrays of NumPy's, whose memory may be looked at through others."""
_FIXED = (
    datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, decimal.Decimal, re.Match,
    re.Pattern, range,
    torch.Size, torch.device, types.CodeType, type(...),
)  # fmt: skip
"""What nobody can change: one object is as good as another."""
_BASES = (int, float, complex, str, bytes, tuple, frozenset)
"""Values that a user's class may add attributes to."""

stand_ins: list[type] = []
"""Classes of ours whose objects stand for others; ``__reduce_ex__`` says for which."""
REMADE = ("copy", "array view", "memory view", "container", "derived", "exception", "bound", "bound method", "reduced",
          "function", "cell", "pairs")  # fmt: skip
"""Kinds of Records that ``remake`` knows."""


@dataclass
class Parts:
    """What an object is made of."""

    kind: str
    named: Any = None
    """The class, or the template that is copied."""
    items: dict[str, Any] = field(default_factory=dict)


def is_fixed(value: Any) -> bool:
    """Whether nobody could tell two such objects apart, but by asking which they are."""
    if type(value) is slice:
        return all(map(is_plain, (value.start, value.stop, value.step)))
    return type(value) in _FIXED or is_a(value, (numpy.generic, numpy.dtype))


def parts_of(value: Any) -> Parts | None:
    """What an object that the trace made consists of; None if nothing is known that would make another one.

    Functions are not looked at: they may refer to themselves.
    """
    if is_a(value, numpy.ndarray) and value.base is not None:
        return _array_view(value)
    if type(value) is memoryview:
        return _memory_view(value)
    if type(value) in _COPIED and not (is_a(value, numpy.ndarray) and value.dtype.hasobject):
        return Parts("copy", _copied(value))
    if is_container(value):
        items = {"content": containers.content(value), **_extra(value), "attributes": objects.attributes(value)}
        return Parts("container", type(value), items)
    if is_a(value, BaseException):
        return _exception(value)
    if is_a(value, types.MethodType):
        return Parts("bound method", None, {"function": value.__func__, "owner": value.__self__})
    if is_a(value, (types.BuiltinMethodType, types.MethodWrapperType)):
        return Parts("bound", value.__name__, {"owner": value.__self__})
    base = next((base for base in _BASES if is_a(value, base)), None)
    if base is not None:
        held: Any = tuple(value) if is_a(value, (tuple, frozenset)) else base(value)
        return Parts("derived", type(value), {"base": held, "attributes": objects.attributes(value)})
    return _reduced(value)


def _extra(value: Any) -> dict[str, Any]:
    if is_a(value, collections.deque):
        return {"maxlen": value.maxlen}
    return {"default_factory": value.default_factory} if is_a(value, collections.defaultdict) else {}


def shows_memory(value: Any) -> bool:
    """Whether a value is a view of memory that another object has as well, which may be changed."""
    if not is_a(value, numpy.ndarray) and type(value) is not memoryview:
        return False
    try:
        base = value.base if is_a(value, numpy.ndarray) else value.obj
        return base is not None and not is_a(base, bytes) and value.nbytes > 0
    except ValueError:  # a memoryview that was released
        return False


def _array_view(value: numpy.ndarray[Any, Any]) -> Parts | None:
    base: Any = value.base
    if is_a(base, bytes) and type(value) is numpy.ndarray:
        return Parts("copy", _copied(value))
    if is_a(base, numpy.ndarray):
        if not (base.flags.c_contiguous or base.flags.f_contiguous):
            return None
    elif type(base) not in _MEMORY:
        return None
    offset = _address(value) - _address(base)
    how = (type(value), value.shape, value.dtype, offset, value.strides, bool(value.flags.writeable))
    return Parts("array view", how, {"base": base, "attributes": objects.attributes(value)})


def _memory_view(value: memoryview) -> Parts | None:
    try:
        base = value.obj
        if not is_a(base, (*_MEMORY, numpy.ndarray)):
            return None
        how = (value.format, value.shape, value.strides, _address(value) - _address(base), value.readonly)
        made = _shown(how, base)
    except (TypeError, ValueError):  # it was released, or holds what Python has no format for
        return None
    same = (made.format, made.shape, made.strides) == (value.format, value.shape, value.strides)
    return Parts("memory view", how, {"base": base}) if same else None


def _address(memory: Any) -> int:
    found: int = numpy.asarray(memory if is_a(memory, numpy.ndarray) else memoryview(memory)).__array_interface__[
        "data"][0]
    return found


def _copied(value: Any) -> Any:
    made = copy.copy(value)
    if is_a(value, numpy.ndarray):
        made.flags.writeable = bool(value.flags.writeable)
    return made


def _exception(value: BaseException) -> Parts:
    reduced: Any = value.__reduce__() if not is_a(value.__reduce__, types.MethodType) else (None, value.args)
    items: dict[str, Any] = {
        "given": reduced[1], "args": value.args, "attributes": objects.attributes(value), "cause": value.__cause__,
        "context": value.__context__, "suppress": value.__suppress_context__,
        "fields": exception_fields.fields_of(value, reduced[1]),
    }  # fmt: skip
    return Parts("exception", (type(value), value.__traceback__), items)


def _reduced(value: Any) -> Parts | None:
    """By the object's own word, for classes of Python's and of libraries."""
    if is_a(type(value).__new__, types.FunctionType) or is_a(value, (type, types.ModuleType)):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            reduced = value.__reduce_ex__(4)
    except (TypeError, AttributeError, ValueError, NotImplementedError):
        return None
    if not is_a(reduced, tuple) or len(reduced) > 5:
        return None
    make, args, state, items, pairs = [*reduced, None, None, None][:5]
    if not callable(make) or make in (getattr, copyreg._reconstructor):  # type: ignore[attr-defined]
        return None
    return Parts("reduced", make, {
        "args": args, "state": state, "items": None if items is None else list(items),
        "pairs": None if pairs is None else dict(pairs),
    })  # fmt: skip


def without_values(function: types.FunctionType) -> types.FunctionType:
    """A function like the given one, with empty cells, no default values and no attributes."""
    return with_cells(function, tuple(types.CellType() for _ in function.__closure__ or ()))


def with_cells(function: types.FunctionType, cells: tuple[types.CellType, ...]) -> types.FunctionType:
    """A function like the given one, with other cells, no default values and no attributes."""
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
    made.__qualname__, made.__doc__, made.__module__ = function.__qualname__, function.__doc__, function.__module__
    made.__annotations__ = dict(function.__annotations__)
    return made


def remake(kind: str, named: Any, items: dict[str, Any]) -> Any:
    """A new object of the parts that ``parts_of`` gave."""
    if kind == "copy":
        return _copied(named)
    if kind == "array view":
        return with_attributes(_view(named, items["base"]), items["attributes"])
    if kind == "memory view":
        return _shown(named, items["base"])
    if kind == "container":
        return _container(named, items)
    if kind == "derived":
        base = next(base for base in _BASES if issubclass(named, base))
        make: Any = base.__new__
        made = make(named, items["base"])
        return with_attributes(made, items["attributes"])
    if kind == "exception":
        return _raised(named, items)
    if kind == "pairs":
        return dict(zip(items["keys"], items["items"]))
    if kind == "bound method":
        return types.MethodType(items["function"], items["owner"])
    if kind == "bound":
        return getattr(items["owner"], named)
    assert kind == "reduced", kind
    return _from_reduced(named, items)


def with_attributes(made: Any, attributes: dict[str, Any]) -> Any:
    """An object, with values for its ``__dict__`` and ``__slots__``; those that are missing are not set."""
    space = unasked(made, "__dict__")
    for name, value in attributes.items():
        if value is MISSING:
            continue
        if type(space) is dict and name not in _slots(type(made)):
            space[name] = value
        else:
            object.__setattr__(made, name, value)
    return made


def _slots(cls: type) -> set[str]:
    found: set[str] = set()
    for base in cls.__mro__:
        found.update(slots_of(base))
    return found


def _view(how: Any, base: Any) -> Any:
    cls, shape, dtype, offset, strides, writeable = how
    memory: Any = numpy.asarray(base).ravel(order="K") if is_a(base, numpy.ndarray) else base
    new: Any = numpy.ndarray.__new__
    made: Any = new(cls, shape, dtype, memory, offset, strides) if len(memory) else new(cls, shape, dtype)
    made.flags.writeable = writeable
    return made


def _shown(how: Any, base: Any) -> memoryview:
    kind, shape, strides, offset, readonly = how
    made = memoryview(base)
    if (made.format, made.shape, made.strides, offset) != (kind, shape, strides, 0):
        made, size = made.cast("B"), struct.calcsize(kind)
        if len(shape) == 1 and strides[0] != size:
            first, last = sorted((offset, offset + strides[0] * (shape[0] - 1)))
            made = made[first:last + size].cast(kind)[:: strides[0] // size]
        else:
            made = made[offset:offset + size * math.prod(shape)].cast(kind, shape)
    return made.toreadonly() if readonly else made


def _container(cls: Any, items: dict[str, Any]) -> Any:
    made = python_kind(cls).__new__(cls)
    if "maxlen" in items:
        collections.deque.__init__(made, (), items["maxlen"])
    if "default_factory" in items:
        made.default_factory = items["default_factory"]
    Place("content", made).set(items["content"])
    return with_attributes(made, items["attributes"])


def _raised(named: Any, items: dict[str, Any]) -> Any:
    cls, traceback = named
    python: Any = next(base for base in cls.__mro__ if module_name(base) == "builtins")
    made = python.__new__(cls, *items["given"])
    python.__init__(made, *items["given"])
    made.args = items["args"]
    made.__cause__, made.__context__ = items["cause"], items["context"]
    made.__suppress_context__ = items["suppress"]
    for name, value in items["attributes"].items():
        setattr(made, name, value)
    exception_fields.with_fields(made, items["fields"])
    return made.with_traceback(traceback)


def _from_reduced(make: Any, items: dict[str, Any]) -> Any:
    made = make(*items["args"])
    state = items["state"]
    if state is not None:
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            space, slots = state if is_a(state, tuple) and len(state) == 2 else (state, None)
            with_attributes(made, {**(space or {}), **(slots or {})})
    if items["items"] is not None:
        for item in items["items"]:
            made.append(item)
    for key, item in (items["pairs"] or {}).items():
        made[key] = item
    return made


__all__ = ["REMADE", "Parts", "is_fixed", "parts_of", "remake", "shows_memory", "with_attributes"]
