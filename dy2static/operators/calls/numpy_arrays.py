"""NumPy's arrays of the trace, as converted code uses them.

    a = x.numpy()            in x's memory
    np.sort(a), a.sum(0)     an Operator each
    float(a.max()), a[0]     a number of the run, an array
    torch.from_numpy(a)      a tensor in a's memory
"""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections import UserList, deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import numpy
import torch

from dy2static.operators.calls import growing, numpy_in_python
from dy2static.operators.calls.call import traced
from dy2static.operators.calls.sequences import StagedSequence
from dy2static.operators.calls.torch_values import to_torch
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Choice, Session, Staged, any_staged, distribute
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.ops import host_numpy
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.memory import host_memory
from runtime.tracer.recording import numpy_calls, reads
from runtime.tracer.values import array as arrays_of_lists
from runtime.tracer.values import structure
from runtime.tracer.values.numpy_arrays import ArrayMethod, NumpyArray, NumpyCopy, NumpyScalar, dtype_of

_FUNCTIONS: dict[int, str] = {
    id(host_numpy.function_of(name)): name for name in host_numpy.NAMES
    if not name.startswith("ndarray.") and "." not in name.removeprefix("linalg.").removeprefix("fft.")
} | {id(getattr(numpy, name)): name for name in host_numpy.PREDICATES}
_MAKING: dict[int, str] = {id(getattr(numpy, name)): name for name in ("asarray", "array", "asanyarray",
                                                                       "ascontiguousarray")}  # fmt: skip
_TO_TENSOR: dict[int, str] = {
    id(getattr(torch, name)): name for name in ("from_numpy", "as_tensor", "tensor", "asarray")} | {
    id(one): "from_numpy" for one in (torch.from_dlpack, torch.utils.dlpack.from_dlpack)}  # fmt: skip

_SHOWING = frozenset(map(id, (torch.from_numpy, torch.as_tensor, torch.asarray, torch.frombuffer, torch.from_dlpack,
                              torch.utils.dlpack.from_dlpack)))  # fmt: skip
"""Functions that make a tensor in the memory of what they are given."""


def _require_heard(session: Session, name: str) -> None:
    """Refuse a call inside ``warnings.catch_warnings()`` of the function itself: a run's warnings would be heard.

    Raises:
        TraceError: D2S268.
    """
    if warnings.filters is not memo(session).filters:
        raise session.error(
            f"numpy.{name}() inside warnings.catch_warnings(): what a run warns of would be heard", code="D2S268",
            hint="Use numpy.errstate, or put the with statement around the call of the converted function.")


numpy_calls.requirements.append(_require_heard)


def called(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that takes such an array, or makes one of a tensor; NotImplemented for all others.

    Raises:
        TraceError: D2S213, the call has no form.
    """
    if type(f) is ArrayMethod:
        return method(session, f, args, kwargs)
    if id(f) in _SHOWING and args and is_a(args[0], host_memory.WITH_MEMORY):
        return _shown(session, f, args, kwargs)
    owner = unasked(f, "__self__")
    if is_a(owner, numpy.ndarray) and f.__name__ == "fill" and is_a((*args, None)[0], (Staged, NumpyArray)):
        return traced(session, operator.setitem, (owner, ..., *args), {})
    given = [*args, *kwargs.values()]
    changing = _changing(f)
    if changing is not None and any(
            any_staged([one]) or _holds_array(one) or _holds_tensor(one) or _holds_grown(one) for one in given):
        return _changed(session, f, changing, args, kwargs)
    name = _FUNCTIONS.get(id(f))
    if name is not None or id(f) in _MAKING or id(f) in _TO_TENSOR:
        chosen = next((one for one in walk(given, _items, _DEEPEST) if is_a(one, Choice)), None)
        if chosen is not None and any(map(_holds_array, (*given, *chosen.options))):
            return distribute(session, chosen, lambda option: traced(
                session, f, _with(args, chosen, option), _with(kwargs, chosen, option)))
        if id(f) not in _TO_TENSOR and any(type(one) in (list, tuple) and _holds_tensor(one) for one in given):
            args, kwargs = _of_arrays(session, args), _of_arrays(session, kwargs)
            given = [*args, *kwargs.values()]
    if (name is not None or id(f) in _MAKING) and any(map(_holds_grown, given)):
        return _of_grown(session, f, args, kwargs)
    arrays = any(map(_holds_array, given))
    if arrays and type(f) is numpy.ufunc and (len(args) > f.nin or kwargs.get("out") is not None):
        return _written(session, f, args, kwargs)
    if arrays and f is numpy.copyto and len(args) == 2 and not kwargs:
        return traced(session, operator.setitem, (args[0], ..., args[1]), {})
    if not arrays and not any(is_a(one, torch.Tensor) for one in given):
        return _of_numbers(session, f, args, kwargs)
    if name is not None and (arrays or type(f) is numpy.ufunc):
        return numpy_calls.record(name, args, kwargs)
    if is_a(owner, numpy.ufunc):
        return numpy_calls.record(f"{f.__self__.__name__}.{f.__name__}", args, kwargs)
    if id(f) in _MAKING and args and is_a(args[0], (NumpyArray, torch.Tensor)):
        return _made(session, _MAKING[id(f)], args, kwargs)
    if not arrays:
        return NotImplemented
    if id(f) in _MAKING and type(args[0] if args else None) in (list, tuple):
        return numpy_calls.record("array", args, kwargs)
    if is_a(f, type) and issubclass(f, numpy.generic) and len(args) == 1 and is_a(args[0], NumpyScalar):
        return numpy_calls.record("ndarray.astype", (args[0], f), {})
    if id(f) in _TO_TENSOR and is_a(args[0] if args else None, NumpyArray):
        return _tensor(session, _TO_TENSOR[id(f)], f, args, kwargs)
    return NotImplemented


def _changing(f: Any) -> str | None:
    """The name of a function of NumPy's that writes the array which it is given first: ``np.add.at``, ``np.put``."""
    owner = unasked(f, "__self__")
    name = f"{owner.__name__}.{f.__name__}" if is_a(owner, numpy.ufunc) else unasked(f, "__name__", "")
    found = host_numpy.WRITING.get(name) if type(name) is str else None
    return name if found is not None and found == f else None


def _changed(session: Session, f: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """``np.add.at(a, places, 1)``: the array holds what NumPy has made of a copy.

    Raises:
        TraceError: D2S213, the array is not one of the Program's.
    """
    array = args[0] if args else None
    if is_a(array, numpy.ndarray):
        host_memory.require_of_program(session, array)
    if type(array) is not NumpyArray:
        raise session.error(f"numpy.{name}() writes what only a run knows to what is no array of the function's own",
                            code="D2S213", hint="Make the array inside, or write it outside the converted function.")
    given = tuple(numpy_calls.of_tensor(session, one) if is_a(one, torch.Tensor) else _places(session, one)
                  for one in _of_arrays(session, args[1:]))  # fmt: skip
    made = numpy_calls.record(name, (array, *given), kwargs)
    traced(session, operator.setitem, (array, ..., made), {})


def _places(session: Session, key: Any) -> Any:
    """What says places, or values, with the arrays that NumPy makes of lists."""
    return tuple(_as_places(session, one) for one in key) if type(key) is tuple else _as_places(session, key)


def _written(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.add(a, b, out=c)``: ``c`` is written, and is the result.

    Raises:
        TraceError: D2S213, there are several results, or one that does not fit.
    """
    given = kwargs.get("out", args[f.nin :])
    out = given[0] if type(given) is tuple and len(given) == 1 else given
    result = traced(session, f, args[: f.nin], {key: one for key, one in kwargs.items() if key != "out"})
    if out is None:
        return result
    fits = is_a(out, (NumpyArray, numpy.ndarray)) and is_a(result, NumpyArray) and f.nout == 1
    if not fits or "where" in kwargs or len(out) != length(session, result) or (
            not numpy.can_cast(dtype_of(result), getattr(out, "dtype", None) or dtype_of(out), "same_kind")):
        raise session.error(f"numpy.{f.__name__}() is given an array to write into that is not like its result",
                            code="D2S213", hint="Write the result: out[...] = numpy.add(a, b).")
    traced(session, operator.setitem, (out, ..., result), {})
    return out


def _of_numbers(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.log(n)``, ``np.mean([a, b])`` and ``np.float64(n)`` of numbers of the run, which NumPy makes its own of."""
    if not any_staged(args) or any_staged(kwargs.values()) or not all(map(_is_of_numbers, args)):
        return NotImplemented
    if is_a(f, type) and issubclass(f, numpy.generic) and len(args) == 1 and is_a(args[0], Staged):
        return NotImplemented if kwargs else _scalar(session, f, args[0])
    if f in (numpy.zeros, numpy.ones, numpy.arange):
        return _of_sizes(session, f, args, kwargs)
    name = _FUNCTIONS.get(id(f)) or _MAKING.get(id(f))
    if name is None or (type(f) is not numpy.ufunc and not any(type(one) in (list, tuple) for one in args[:1])):
        return NotImplemented
    given = tuple(_as_array(session, one) if type(one) in (list, tuple) and any_staged([one]) else one for one in args)
    if any(is_a(one, NumpyArray) for one in given):
        return called(session, f, given, kwargs)
    return numpy_calls.record(name, args, kwargs) if type(f) is numpy.ufunc else NotImplemented


def _of_sizes(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.zeros((n, 2))``, ``np.ones(n)`` and ``np.arange(n)`` of whole numbers of the run."""
    given = [one for arg in args for one in (arg if type(arg) in (list, tuple) else [arg])]
    if not all(type(one) is int or is_a(one, Staged) and one.kind == "int" for one in given):
        return NotImplemented
    if f is numpy.arange:
        plain = not kwargs and len(args) == len(given) <= 2
        return traced(session, numpy_in_python.arange, (0, *args)[-2:], {}) if plain else NotImplemented
    dtype = getattr(torch, numpy.dtype(kwargs.get("dtype", float)).name, None)
    if set(kwargs) - {"dtype"} or len(args) != 1 or dtype is None or growing.is_growing(args[0]):
        return NotImplemented
    return traced(session, getattr(numpy_in_python, f.__name__), (args[0], dtype), {})


def _scalar(session: Session, kind: Any, value: Staged) -> Any:
    """``np.float32(n)`` of a number of the run; whether one fits into the smaller whole numbers only the run knows."""
    if kind not in (numpy.float64, numpy.float32, numpy.int64, numpy.bool_):
        return NotImplemented
    if kind is numpy.bool_:
        value = session.scalar("truth", value) if value.kind != "bool" else value
    elif kind is numpy.int64:
        value = session.scalar("int", value) if value.kind != "int" else value
    else:
        value = session.scalar("float", value) if value.kind != "float" else value
    dtype = getattr(torch, numpy.dtype(kind).name)
    double = torch.scalar_tensor(to_torch(session, value), dtype=torch.float64 if dtype.is_floating_point else dtype)
    return NumpyScalar(double.to(dtype))


def _of_arrays(session: Session, value: Any) -> Any:
    """Arguments with lists of tensors, which NumPy takes for their arrays."""
    if is_a(value, dict):
        return {key: _of_arrays(session, one) for key, one in value.items()}

    def inside(one: Any) -> Any:
        if type(one) in (list, tuple) and _holds_tensor(one):
            return type(one)(inside(item) for item in one)
        return numpy_calls.of_tensor(session, one) if is_a(one, torch.Tensor) else one

    return tuple(inside(one) if type(one) in (list, tuple) else one for one in value) if type(value) is tuple else (
        inside(value) if type(value) is list else value)


def _with(value: Any, chosen: Any, option: Any) -> Any:
    """Arguments with one of several values in its place."""
    if value is chosen:
        return option
    if type(value) is dict:
        return {key: _with(one, chosen, option) for key, one in value.items()}
    return type(value)(_with(one, chosen, option) for one in value) if type(value) in (list, tuple) else value


def _is_of_numbers(value: Any) -> bool:
    """Whether it is a number, or a list or tuple of such whose length is known."""
    if is_a(value, Staged):
        return value.kind in ("int", "float", "bool")
    if type(value) in (list, tuple):
        return all(map(_is_of_numbers, value))
    return value is None or type(value) in (int, float, bool, str)


def _as_array(session: Session, values: Any) -> Any:
    """The array that NumPy makes of a list: of floats, with whole numbers among them, or of whole numbers."""
    kinds = {one.kind if is_a(one, Staged) else type(one).__name__ for one in walk([values], _items, _DEEPEST)
             if type(one) not in (list, tuple)}
    return _of_kinds(session, values, kinds) if kinds <= {"float", "int"} else values


def _of_kinds(session: Session, values: Any, kinds: AbstractSet[str]) -> Any:
    dtype = torch.float64 if "float" in kinds else torch.int64 if "int" in kinds else torch.bool
    return _numpy(session, traced(session, torch.tensor, (values,), {"dtype": dtype}))


def _numpy(session: Session, tensor: Any) -> Any:
    """A tensor that was made of a list as an array; of one of several, one of several."""
    if is_a(tensor, Choice):
        return distribute(session, tensor, lambda option: _numpy(session, option))
    return numpy_calls.of_tensor(session, tensor.contiguous())


def _of_grown(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that is given lists of which only the run knows how many items they have: it is given their arrays.

    Raises:
        TraceError: D2S213, of such items NumPy makes an array that no tensor carries, or one of another dtype.
    """
    makes = id(f) in _MAKING
    dtype = dict(zip(("a", "dtype"), args)).get("dtype", kwargs.get("dtype")) if makes else None
    if makes and dtype is not None and growing.is_growing(args[0] if args else None):
        return traced(session, f, (_grown(session, f, args[0], numpy.dtype(dtype)), *args[1:]), kwargs)

    def inside(one: Any) -> Any:
        if growing.is_growing(one):
            return _grown(session, f, one, None)
        return type(one)(map(inside, one)) if type(one) in (list, tuple) and _holds_grown(one) else one

    return traced(session, f, tuple(map(inside, args)), {key: inside(one) for key, one in kwargs.items()})


def _grown(session: Session, f: Any, values: Any, dtype: numpy.dtype[Any] | None) -> Any:
    """The array of such a list. ``dtype``: what the caller makes it."""
    item = arrays_of_lists.content(values).item
    kinds = _kinds(item)
    if kinds == {"array"} and (dtype is None or dtype.kind == "f"):
        return traced(session, numpy_in_python.of_arrays, (values,), {})
    if kinds is None or not kinds <= {"float", "int", "bool"} or (dtype is None and _mixes(item)):
        raise _refusal(session, f)
    if dtype is None:
        made = _of_kinds(session, values, kinds)
        return made if "float" in kinds else traced(session, numpy_in_python.unless_empty, (values, made), {})
    exact = {"f": "float", "b": "bool"}.get(dtype.kind, "int" if dtype == numpy.int64 or kinds == {"bool"} else None)
    if exact is None or dtype.kind not in "fbiu":  # whether a number fits only the run knows
        raise _refusal(session, f)
    return _of_kinds(session, values, {exact})


_DEEPEST = 32
"""NumPy makes no array of more dimensions; a list may hold itself."""


def _holds_array(value: Any) -> bool:
    if type(value) not in (list, tuple):
        return is_a(value, NumpyArray)
    return any(is_a(one, NumpyArray) for one in walk([value], _items, _DEEPEST))


def _kinds(item: structure.Structure) -> set[str] | None:
    """Of what kinds the numbers are that items hold; None where NumPy makes no array of numbers of them."""
    if is_a(item, structure.Number):
        return {item.kind}
    if is_a(item, structure.Known):
        return {type(item.value).__name__}
    if is_a(item, structure.Array):
        return _kinds(item.item)
    if is_a(item, structure.Fields) and issubclass(item.cls, NumpyArray) and not issubclass(item.cls, NumpyCopy):
        return {"array"}
    parts = item.options if is_a(item, structure.Options) else item.items if is_a(item, structure.Sequence) else ()
    found = [_kinds(one) for one in parts]
    return None if None in found or not found else set().union(*(kinds for kinds in found if kinds))


def _mixes(item: structure.Structure) -> bool:
    """Whether the dtype of the array depends on which items a run has: an int in one place, or a float."""
    if is_a(item, structure.Options):
        return len(_kinds(item) or ()) > 1
    return any(map(_mixes, item.items)) if is_a(item, structure.Sequence) else is_a(
        item, structure.Array) and _mixes(item.item)


def _items(value: Any) -> Any:
    return value if type(value) in (list, tuple) else ()


def _holds_grown(value: Any) -> bool:
    """Whether it is a list, or holds one, of which only the run knows how many items it has."""
    return type(value) in (list, tuple) and any(
        type(one) in (list, tuple) and growing.is_growing(one) for one in walk([value], _items, _DEEPEST))


def _holds_tensor(value: Any) -> bool:
    return any(is_a(one, torch.Tensor) for one in walk([value], _items, _DEEPEST))


def holds_arrays(value: Any) -> bool:
    """Whether it is an array, or one of several values among which is one."""
    return is_a(value, NumpyArray) or is_a(value, Choice) and any(map(holds_arrays, value.options))


def require_none(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse to give such an array to code that is not converted.

    Raises:
        TraceError: D2S213.
    """
    if any(map(_holds_array, (*args, *kwargs.values()))):
        raise _refusal(session, f)


def _refusal(session: Session, f: Any) -> Exception:
    return session.error(
        f"{getattr(f, '__name__', type(f).__name__)}() is given a NumPy array that is only known while the Program "
        "runs", code="D2S213", hint="Use NumPy's functions that give another array, or tensor operations.")


def require_not_named(session: Session, f: Any, error: Exception) -> None:
    """Refuse an error that code which is not converted raises for what stands for an array: it gets no buffer, and no
    number, of which NumPy's own has one.

    Raises:
        TraceError: D2S213.
    """
    told = (one for one in error.args if type(one) is str)  # what only the run knows is told by converted code
    if any(map(_STANDING.search, told)):
        raise _refusal(session, f) from error


_STANDING = re.compile(r"\bNumpy(Array|Scalar|Copy)\b")


def require_no_data(session: Session, f: Any, values: Any) -> None:
    """Refuse to give what only the run knows to a function of NumPy's that would take it for data.

    Raises:
        TraceError: D2S213.
    """
    of_ufunc = is_a(unasked(f, "__self__"), numpy.ufunc)  # np.add.reduce
    if not of_ufunc and not str(unasked(f, "__module__") or "").startswith("numpy"):
        return
    if is_a(f, numpy.ufunc) or f is numpy.iterable:  # which ask what they are given
        return
    values = [list(value.data) if is_a(value, UserList) else value for value in values]
    if any_staged(values) or any(is_a(one, StagedSequence) for one in walk(values, _items, _DEEPEST)):
        raise session.error(
            f"numpy.{getattr(f, '__name__', f)}() gets a value that is only known while the Program runs",
            hint="Use torch.tensor(), or do it outside the converted function.", code="D2S213")


def _made(session: Session, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.asarray(x)`` and its like, of one array or tensor."""
    given = dict(zip(("a", "dtype"), args)) | kwargs
    if len(args) > 2 or set(given) - {"a", "dtype", "copy"} or given.get("copy") not in (None, True, False):
        raise session.error(f"numpy.{name}() of an array of the Program with such options", code="D2S213",
                            hint="Give the array and a dtype.")
    array = args[0]
    if is_a(array, torch.Tensor):
        array = numpy_calls.of_tensor(session, array)
    elif is_a(array, NumpyScalar):
        array = numpy_calls.record("reshape", (numpy_calls.record("atleast_1d", (array,), {}), ()), {})
    copies = name == "array" if given.get("copy") is None else bool(given["copy"])
    dtype = given.get("dtype")
    if dtype is not None and numpy.dtype(dtype) != dtype_of(array):
        return numpy_calls.record("ndarray.astype", (array, dtype), {})
    if copies:
        return numpy_calls.record("ndarray.copy", (array, "K") if name == "array" else (array,), {})
    if name == "ascontiguousarray" and not numpy_calls.is_contiguous(session, array):
        return numpy_calls.record("ndarray.copy", (array,), {})
    return array


def _shown(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor that torch makes of an array or buffer, whose memory it may show: each run makes it anew; of an object
    from outside it is a tensor from outside."""
    value = args[0]
    with torch_internals.no_modes():
        real = _theirs(f, *args, **kwargs)
    if not host_memory.shares(real, value):
        return _theirs(f, *args, **kwargs)
    owner = host_memory.owner_of(value)
    if id(owner) in session.objects.externals or id(value) in session.objects.externals:
        session.guards.pin(value)
        session.guards.pin(owner)
        return session.inputs.lift(real).detach()
    tensor = torch.ops.aten.lift_fresh.default(real)
    host_memory.note(session, tensor, real, value)
    return tensor


def _tensor(session: Session, name: str, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.from_numpy(a)`` and its like."""
    array = args[0]
    if name == "from_numpy" and type(array) is NumpyScalar:
        _theirs(f, numpy.float32(0))
    tensor = numpy_calls.to_tensor(session, array)
    if name == "from_numpy":
        return tensor
    if is_a(array, NumpyScalar) and name != "tensor":
        tensor = tensor.clone()
    options = dict(zip(("dtype", "device"), args[1:])) | kwargs
    if set(options) - {"dtype", "device"}:
        raise session.error(f"torch.{name}() of a NumPy array of the Program with such options", code="D2S213",
                            hint="Give a dtype and a device.")
    if name == "tensor":
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    options = {key: value for key, value in options.items() if value is not None}
    return tensor.to(**options) if options else tensor


@acts_for_user
def _theirs(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def as_data(session: Session, f: Any, data: Any) -> Any:
    """Lists that ``torch.tensor`` is given: a scalar of NumPy's has its dtype there, as a tensor has.

    Raises:
        TraceError: D2S213, one holds an array.
    """
    if not is_a(data, (list, tuple)) or not _holds_array(data):
        return data
    items: list[Any] = []
    for one in data:
        if type(one) is NumpyScalar:
            items.append(one.tensor)
        else:
            require_none(session, f, (one,) if is_a(one, NumpyArray) else (), {})
            items.append(as_data(session, f, one))
    return items


def for_torch(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Arguments of a function of torch's: scalars of NumPy's are numbers for it.

    Raises:
        TraceError: D2S213, one is an array.
    """
    given = [*args, *kwargs.values()]
    if not any(map(_holds_array, given)):
        return args, kwargs
    args = tuple(number(session, one) if type(one) is NumpyScalar else one for one in args)
    kwargs = {key: number(session, one) if type(one) is NumpyScalar else one for key, one in kwargs.items()}
    require_none(session, f, args, kwargs)
    return args, kwargs


def beside_tensors(session: Session, a: Any, op: str, b: Any) -> tuple[Any, Any]:
    """The operands of an operator: a scalar of NumPy's beside a tensor is a number for torch, but for a bool or a
    complex one left of it, which asks NumPy first.

    Raises:
        TraceError: D2S213, a tensor and an array.
    """
    if is_a(a, torch.Tensor) and type(b) is NumpyScalar:
        return a, number(session, b)
    if is_a(b, torch.Tensor) and type(a) is NumpyScalar and dtype_of(a).kind in "iuf":
        return number(session, a), b
    if is_a(a, torch.Tensor) or is_a(b, torch.Tensor):
        if is_a(a, NumpyArray) or is_a(b, NumpyArray):
            raise session.error(f"'{op}' of a tensor and a NumPy array", code="D2S213",
                                hint="Make the array a tensor (torch.from_numpy).")
    return a, b


def beside_numbers(session: Session, a: Any, op: str, b: Any) -> tuple[Any, Any]:
    """The operands of an operator: a staged number beside NumPy's numbers or arrays is one of NumPy's, of the dtype
    that NumPy gives a Python number there; what is compared need not fit into it.

    Raises:
        TraceError: D2S210, whether it fits into that dtype is only known while the Program runs.
    """
    compares = op in ("==", "!=", "<", "<=", ">", ">=")
    if is_a(a, Staged) and is_a(b, OF_NUMPY):
        return _fitting(session, a, b, compares), b
    if is_a(b, Staged) and is_a(a, OF_NUMPY):
        return a, _fitting(session, b, a, compares)
    return a, b


OF_NUMPY = (NumpyArray, numpy.generic, numpy.ndarray)


def _fitting(session: Session, value: Staged, other: Any, compares: bool) -> NumpyScalar:
    dtype = dtype_of(other) if is_a(other, NumpyArray) else other.dtype
    if value.kind in ("bool", "int", "float") and dtype.kind in "biuf":
        wanted = numpy.result_type(dtype, value.python_type(1))
        if compares and wanted.kind in "iu" and wanted != numpy.uint64:
            wanted = numpy.dtype(numpy.int64)
        if wanted.kind in "bf" or wanted == numpy.int64 or (wanted.kind == "i" and value.kind == "bool"):
            tensor = torch.scalar_tensor(to_torch(session, value), dtype=getattr(torch, wanted.name))
            return NumpyScalar(tensor)
    raise session.error(
        f"a Python {value.kind} that is only known while the Program runs is used with NumPy's {dtype.name}",
        code="D2S210", hint="Make NumPy's number a Python one: .item().")


def truth(session: Session, array: NumpyArray) -> torch.Tensor:
    """What says whether an array is true: the tensor of its one item."""
    if not _has_one_item(session, array):
        raise session.error("the truth of a NumPy array with several items, or none", code="D2S213",
                            hint="Use .any() or .all().")
    return array.tensor


# -- what an array has


_WRITING = ("fill", "sort")
"""Methods that write the array."""
_SHOWN = ("shape", "ndim", "size", "dtype", "itemsize", "nbytes")


def attribute(session: Session, array: NumpyArray, name: str) -> Any:
    """``array.name``."""
    fake = session.fake(array.tensor)
    if name in ("shape", "size", "nbytes") and not all(type(size) is int for size in fake.shape):
        shape = tuple(size if type(size) is int else session.sizes.staged(size) for size in fake.shape)
        return shape if name == "shape" else math.prod(shape) * (
            dtype_of(array).itemsize if name == "nbytes" else 1)
    if name in _SHOWN:
        like = numpy.lib.stride_tricks.as_strided(
            numpy.zeros((), dtype_of(array)), tuple(size if type(size) is int else 1 for size in fake.shape),
            (0,) * fake.dim())
        return getattr(like, name)
    if name in ("T", "real", "imag"):
        return numpy_calls.record("transpose" if name == "T" else name, (array,), {})
    kind = eager_class(array)
    if name in ("item", "tolist", *_WRITING, *host_numpy.METHODS) and hasattr(kind, name):
        return ArrayMethod(array, name)
    if not hasattr(kind, name):
        raise AttributeError(f"'{kind.__module__}.{kind.__name__}' object has no attribute '{name}'")
    raise session.error(f".{name} of a NumPy array that is only known while the Program runs", code="D2S213",
                        hint="Use NumPy's functions that give another array, or tensor operations.")


def method(session: Session, found: ArrayMethod, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``array.name(*args)``."""
    if found.name == "item" and not args and not kwargs:
        return number(session, found.array)
    if found.name == "tolist" and not args and not kwargs:
        return traced(session, torch.Tensor.tolist, (found.array.tensor,), {})
    if found.name in _WRITING and is_a(found.array, NumpyScalar):
        getattr(dtype_of(found.array).type(), found.name)(*args, **kwargs)
    if found.name == "fill" and len(args) == 1 and not kwargs:
        return traced(session, operator.setitem, (found.array, ..., *args), {})
    if found.name == "sort":
        ordered = numpy_calls.record("sort", (found.array, *args), kwargs)
        return traced(session, operator.setitem, (found.array, ..., ordered), {})
    if found.name == "item":
        raise session.error(".item() of a NumPy array with an index", code="D2S213", hint="Index the array.")
    return numpy_calls.record(f"ndarray.{found.name}", (found.array, *args), kwargs)


def is_open_key(key: Any) -> bool:
    """Whether only the run knows the place that the key of an array says."""
    return _holds_array(key) or any_staged([key])


def item(session: Session, array: Any, key: Any) -> Any:
    """``array[key]``, of an array of the Program, or of one from outside at a place that only the run knows."""
    return numpy_calls.record("ndarray.__getitem__", (array, _places(session, key)), {})


def _as_places(session: Session, key: Any) -> Any:
    """A list of places, or of flags, that only the run knows as the array that NumPy makes of it."""
    if type(key) is not list or not (growing.is_growing(key) or any_staged([key])):
        return key
    kinds = growing.kinds_of(key)
    if kinds is None or not kinds <= {"int", "bool"}:
        return key
    dtype = torch.int64 if "int" in kinds else torch.bool
    return numpy_calls.of_tensor(session, traced(session, torch.tensor, (key,), {"dtype": dtype}))


def as_key(session: Session, obj: Any, key: Any) -> Any:
    """A key of a tensor or sequence: arrays in it are tensors for torch, scalars are numbers."""
    if is_a(key, NumpyScalar):
        if is_a(obj, _BY_PLACE) and dtype_of(key).kind not in "iu":
            like = next(kind for kind in _BY_PLACE if is_a(obj, kind))
            _theirs(operator.getitem, like(), dtype_of(key).type())  # which Python refuses, in its words
        return number(session, key)
    if is_a(obj, torch.Tensor):
        if type(key) is tuple and any(map(_holds_array, key)):
            return tuple(as_key(session, obj, one) for one in key)
        return numpy_calls.to_tensor(session, key) if is_a(key, NumpyArray) else key
    return key


_BY_PLACE = (list, tuple, str, bytes, deque)


def as_number_only(session: Session, value: Any) -> Any:
    """What is stored to a tensor: a scalar of NumPy's is a number; torch takes no array."""
    if is_a(value, NumpyScalar):
        return number(session, value)
    if is_a(value, NumpyArray):
        _theirs(torch.zeros(1).__setitem__, 0, numpy.zeros(session.fake(value.tensor).dim() * (1,), dtype_of(value)))
    return value


def number(session: Session, array: NumpyArray) -> Any:
    """``array.item()``.

    Raises:
        TraceError: D2S213, how many items there are is only known while the Program runs.
    """
    if not _has_one_item(session, array):
        _theirs(numpy.zeros(2).item)
    return reads.number(session, array.tensor)


def _has_one_item(session: Session, array: NumpyArray) -> bool:
    shape = session.fake(array.tensor).shape
    if not all(type(size) is int for size in shape):
        raise session.error("whether a NumPy array has one item is only known while the Program runs", code="D2S213",
                            hint="Index the array, or use .any() or .all().")
    return math.prod(shape) == 1


def as_number(session: Session, array: NumpyArray, name: str) -> Any:
    """``float(array)`` and its like.

    Raises:
        TraceError: D2S213, it has dimensions.
    """
    if session.fake(array.tensor).dim():
        raise session.error(f"{name}() of a NumPy array with dimensions", code="D2S213", hint="Use .item().")
    value = reads.number(session, array.tensor)
    return session.scalar(name, value) if is_a(value, Staged) and value.kind != name else value


def items(session: Session, array: NumpyArray) -> Iterator[Any]:
    """What a loop over the array takes."""
    fake = session.fake(array.tensor)
    if not fake.dim():
        _theirs(iter, numpy.zeros(()))
    return iter([item(session, array, index) for index in range(fake.shape[0])])


def length(session: Session, array: NumpyArray) -> Any:
    """``len(array)``."""
    fake = session.fake(array.tensor)
    if not fake.dim():
        _theirs(len, numpy.float32(0) if is_a(array, NumpyScalar) else numpy.zeros(()))
    size = fake.shape[0]
    return size if type(size) is int else session.sizes.staged(size)


def eager_class(array: NumpyArray) -> type:
    """What ``type(array)`` is in eager."""
    return dtype_of(array).type if is_a(array, NumpyScalar) else numpy.ndarray


__all__ = [
    "OF_NUMPY", "as_data", "as_key", "as_number", "as_number_only", "attribute", "beside_numbers", "beside_tensors",
    "called", "eager_class", "for_torch", "holds_arrays", "is_open_key", "item", "items", "length", "number",
    "require_no_data", "require_none", "require_not_named", "truth",
]  # fmt: skip
