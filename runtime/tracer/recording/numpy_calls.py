"""Calls of NumPy's functions on arrays of the trace: one Operator each (``ops.host_numpy``).

What a call gives is found by doing it with several samples that look like its operands; a run holds its results against
that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy
import torch

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.kinds import is_a
from runtime.ops import host_numpy
from runtime.tracer.ambient import state
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.ambient.unasked import has_unasked
from runtime.tracer.memory.deferred import needed
from runtime.tracer.memory.unknown_aliasing import note_maybe_copy
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording import numpy_sizes, reads
from runtime.tracer.recording.raising import raise_where
from runtime.tracer.recording.session import Session
from runtime.tracer.values import numpy_arrays
from runtime.tracer.values.numpy_arrays import NumpyArray, NumpyCopy, NumpyScalar

requirements: list[Callable[[Session, str], None]] = []
"""What else is asked of each call, by rooms that know more."""
_HINT = "Use tensor operations, or do it outside the converted function, or in a function marked not_to_static."


def of_tensor(session: Session, tensor: torch.Tensor, force: bool = False) -> NumpyArray:
    """``tensor.numpy()``: an array in the tensor's memory.

    Raises:
        RuntimeError, TypeError: What eager raises.
        TraceError: D2S213, the layout is only known while the Program runs.
    """
    info = session.info(tensor)
    with torch_internals.no_modes():
        fake = session.fake(tensor)
        sample = _real(session, fake, _zeros, _any_sizes(fake))
        sample = sample.conj() if fake.is_conj() else torch_internals.negative(sample) if fake.is_neg() else sample
        said = _said(sample, False, force)
        of_gradients = _said(sample, True, force) if info.requires_grad and said is None else None
    if said is not None:
        _raise(said)
    if of_gradients is not None:
        raise_where(session, needed(info), of_gradients)
    if fake.is_conj() or fake.is_neg():
        tensor = tensor.clone()
    return NumpyArray(tensor.detach())


def _said(sample: torch.Tensor, needs: bool, force: bool) -> RuntimeError | TypeError | None:
    """What PyTorch raises for ``.numpy()`` of such a tensor."""
    try:
        (sample.detach().requires_grad_() if needs else sample).numpy(force=force)
    except (RuntimeError, TypeError) as error:
        return error.with_traceback(None)
    return None


def to_tensor(session: Session, array: NumpyArray) -> torch.Tensor:
    """``torch.from_numpy(array)``: a tensor in the array's memory."""
    if is_a(array, NumpyCopy):
        raise session.error("a tensor is made of a NumPy array with negative strides, or that may not be written",
                            code="D2S213", hint="Use .copy() of the array.")
    return array.tensor.detach()


def is_carried(array: numpy.ndarray[Any, Any]) -> bool:
    """Whether a tensor can have an array's items."""
    return type(array) is numpy.ndarray and host_numpy.kind_of(array) is not None


def sizes(session: Session, array: NumpyArray) -> tuple[Any, ...]:
    """An array's sizes, as expressions where only the run knows them: equal where they are the same in any run."""
    return tuple(map(torch_internals.size_expr, session.fake(array.tensor).shape))


def is_open(session: Session, array: NumpyArray) -> bool:
    """Whether only the run knows one of an array's sizes."""
    return not all(type(size) is int for size in session.fake(array.tensor).shape)


def some_shape(session: Session, array: NumpyArray) -> tuple[int, ...]:
    """The sizes that an array may have; those that only the run knows are made of one number."""
    fake = session.fake(array.tensor)
    return numpy_sizes.plain(fake.shape, numpy_sizes.alike(numpy_sizes.symbols_of([fake]))[0])


def is_contiguous(session: Session, array: NumpyArray) -> bool:
    """Whether ``np.ascontiguousarray(array)`` is the array."""
    with torch_internals.no_modes():
        fake = session.fake(array.tensor)
        sample = _real(session, fake, _zeros, _any_sizes(fake)).numpy()
    return numpy.ascontiguousarray(sample) is sample


def _any_sizes(fake: torch.Tensor) -> numpy_sizes.Sizes:
    return numpy_sizes.apart(numpy_sizes.symbols_of([fake]))[0]


@dataclass(frozen=True)
class _Look:
    """What one result of a sample looks like; ``strides`` None: only the run knows."""

    kind: str
    dtype: torch.dtype
    shape: tuple[Any, ...]
    strides: tuple[Any, ...] | None
    shared: bool
    apart: bool


def record(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``numpy.<name>(*args, **kwargs)``, when the Program runs.

    Raises:
        TraceError: D2S213, the function is not in the table, writes, or what it gives depends on values.
    """
    session = state.current()
    for require in requirements:
        require(session, name)
    if not set(numpy.geterr().values()) <= set(host_numpy.ERRORS):
        raise _refusal(session, name, "tells of errors by calling a function")
    if name not in host_numpy.NAMES:
        raise _refusal(session, name, "is not among the functions of NumPy's that a Program may call")
    out = kwargs.get("out")
    if not (out is None or type(out) is tuple and all(one is None for one in out)) or "where" in kwargs:
        raise _refusal(session, name, "is given an array to write into")
    kwargs = {key: _plain(value) for key, value in kwargs.items() if key != "out"}
    args = tuple(map(_plain, args))
    values = list(_leaves([args, kwargs]))
    for value in values:
        if not _is_operand(value):
            raise _refusal(session, name, f"is given a {type(value).__name__}")
    if any(is_a(value, Staged) for value in values) and not _takes_numbers(name, args):
        raise _refusal(session, name, "is given a number that is only known while the Program runs")
    many, looks = _tried(session, name, args, kwargs)
    operands = [_operand(session, arg) for arg in args]
    keywords = {key: _operand(session, arg) for key, arg in kwargs.items()}
    fakes = [_fake(session, look) for look in looks]
    attrs: dict[str, Any] = {"gives": [look.kind for look in looks], "many": many is not None}
    errors: dict[str, Any] = dict(numpy.geterr())
    if errors != host_numpy.USUAL_ERRORS:  # inside numpy.errstate
        attrs["errors"] = [errors[kind] for kind in host_numpy.USUAL_ERRORS]
    made = session.emit(host_numpy.FAMILY + name, operands, keywords, [session.type_of(fake) for fake in fakes],
                        attrs=attrs)  # fmt: skip
    results: list[Any] = []
    for fake, var, look in zip(fakes, made, looks):
        result = session.fresh(fake, var, layout_known=look.strides is not None)
        session.sizes.bind_sizes(fake, var)
        for other in results + values if look.shared else []:
            tensor = other.tensor if is_a(other, NumpyArray) else other
            if is_a(tensor, torch.Tensor):
                note_maybe_copy(session.info(tensor).storage, session.info(result).storage,
                                "NumPy made an array of another's memory", session.location())  # fmt: skip
        results.append(_wrapped(session, result, look))
    if many is None:
        return reads.number(session, results[0].tensor) if name in host_numpy.PREDICATES else results[0]
    made_of: Any = many
    return made_of(*results) if has_unasked(many, "_fields") else made_of(results)


def drawn(session: Session, name: str, args: Any, kwargs: Any, sample: Any) -> Any:
    """An array or scalar that a run draws, of which a sample was drawn."""
    look = _look(session, name, sample, [])
    fake = _fake(session, look)
    (var,) = session.emit(name, args, kwargs, [session.type_of(fake)], attrs={"gives": look.kind})
    return _wrapped(session, session.fresh(fake, var), look)


def _refusal(session: Session, name: str, why: str) -> Exception:
    return session.error(f"numpy.{name}() of an array that is only known while the Program runs {why}", code="D2S213",
                         hint=_HINT)  # fmt: skip


def _wrapped(session: Session, result: torch.Tensor, look: _Look) -> Any:
    if look.kind == "tensor":
        return result
    if look.kind == "number":
        return reads.number(session, result)
    if look.kind == "generic":
        return NumpyScalar(result)
    return NumpyCopy(result) if look.apart else NumpyArray(result)


# -- operands


def _plain(value: Any) -> Any:
    """An argument as an Operator has it: classes and dtypes by name."""
    if is_a(value, numpy.dtype) or (is_a(value, type) and issubclass(value, (numpy.generic, int, float,
                                                                                         complex))):  # fmt: skip
        return numpy.dtype(value).name
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if type(value) is numpy.ndarray and host_numpy.kind_of(value):
        return _Constant(torch.from_numpy(value.copy()))
    if is_a(value, numpy.generic):
        return NumpyScalar(torch.from_numpy(numpy.array(value))) if host_numpy.kind_of(value) else value
    return value


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) in (list, tuple):
        for item in value:
            yield from _leaves(item)
    elif type(value) is dict:
        for item in value.values():
            yield from _leaves(item)
    elif type(value) is slice:
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def _is_operand(value: Any) -> bool:
    if value is None or value is ... or is_a(value, (Staged, NumpyArray, torch.Tensor)):
        return True
    return type(value) in (int, float, bool, complex, str)


def _takes_numbers(name: str, args: tuple[Any, ...]) -> bool:
    """Whether what a function gives looks the same for all numbers that it may be given."""
    if name == "ndarray.__getitem__":
        return is_a(args[1], Staged) and args[1].kind == "int"  # a bool gives none or one of what there is
    if name in host_numpy.WRITING:
        return True
    return name in host_numpy.OPERATORS or name == "array" or type(host_numpy.function_of(name)) is numpy.ufunc


def _operand(session: Session, value: Any) -> Any:
    if is_a(value, NumpyArray):
        return {"generic" if is_a(value, NumpyScalar) else "array": session.read(value.tensor)}
    if type(value) in (list, tuple):
        return type(value)(_operand(session, item) for item in value)
    if type(value) is slice:
        return slice(*(_operand(session, one) for one in (value.start, value.stop, value.step)))
    return session.operand(value)


class _Constant(NumpyArray):
    """An array from outside, as it is now: guards hold it against later calls."""


# -- samples


def _zeros(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> Any:
    return numpy.zeros(shape, dtype)


def _ramp(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> Any:
    return numpy.asarray(numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) % 100, dtype)


def _noise(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> Any:
    drawn = numpy.random.RandomState(0).uniform(0.1, 1.9, shape)
    return numpy.asarray(drawn, dtype)


def _definite(shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> Any:
    """Noise, with a heavy diagonal: a matrix that has an inverse, and a root."""
    made = numpy.asarray(numpy.full(shape, 0.1), dtype)
    if len(shape) >= 2:
        diagonal = numpy.arange(min(shape[-2:]))
        made[..., diagonal, diagonal] = 3
    return made


_FILLS = (_zeros, _ramp, _noise, _definite)


def _real(session: Session, fake: torch.Tensor, fill: Any, sizes: numpy_sizes.Sizes) -> torch.Tensor:
    """A tensor like a fake one, in memory as it is, filled."""
    if not session.info(fake).layout_known:
        raise session.error(
            "a NumPy array is made of a tensor whose layout is only known while the Program runs",
            code="D2S213", hint=_HINT)
    shape = numpy_sizes.plain(fake.shape, sizes)
    strides = numpy_sizes.plain(torch_internals.strides_of(fake), sizes)
    with torch_internals.no_modes():
        made = torch.empty_strided(shape, strides, dtype=fake.dtype, device=fake.device)
        if fake.device.type == "cpu":
            try:
                dtype = numpy.dtype(str(fake.dtype).removeprefix("torch."))
                torch.from_numpy(numpy.zeros(1, dtype))
            except TypeError:  # bfloat16, which NumPy may know from a package that PyTorch does not
                return made.zero_()
            if any(not stride and size > 1 for size, stride in zip(shape, strides)):  # items share memory
                extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
                return torch.from_numpy(fill((extent,), dtype)).as_strided(shape, strides)
            made.copy_(torch.from_numpy(fill(shape, dtype)))
    return made


def _sample(session: Session, value: Any, fill: Any, sizes: numpy_sizes.Sizes) -> Any:
    if is_a(value, NumpyArray):
        array = _real(session, session.fake(value.tensor), fill, sizes).numpy()
        if is_a(value, NumpyCopy):
            array.flags.writeable = False  # and so are views of it
        return array[()] if is_a(value, NumpyScalar) else array
    if is_a(value, torch.Tensor):
        info = session.info(value)
        made = _real(session, session.fake(value), fill, sizes)
        return made.requires_grad_() if info.requires_grad else made
    if is_a(value, Staged):
        return {"int": 0, "float": 0.5, "bool": True, "complex": 1j, "str": "1"}[value.kind]
    if type(value) in (list, tuple):
        return type(value)(_sample(session, item, fill, sizes) for item in value)
    if type(value) is slice:
        return slice(*(_sample(session, one, fill, sizes) for one in (value.start, value.stop, value.step)))
    if type(value) is dict:
        return {key: _sample(session, item, fill, sizes) for key, item in value.items()}
    return value


def _tried(session: Session, name: str, args: Any, kwargs: Any) -> tuple[type | None, list[_Look]]:
    """In what a call gives several results, None for one, and what each looks like.

    Raises:
        Exception: What the call raises for all samples.
        TraceError: D2S213, samples differ.
    """
    tensors = [one.tensor if is_a(one, NumpyArray) else one for one in _leaves([args, kwargs])
               if is_a(one, (NumpyArray, torch.Tensor))]  # fmt: skip
    fakes = [session.fake(one) for one in tensors]
    symbols = numpy_sizes.symbols_of(fakes)
    if not symbols:
        return _tried_with(session, name, args, kwargs, {})
    failures: list[Exception] = []

    def tried(several: list[numpy_sizes.Sizes]) -> list[tuple[numpy_sizes.Sizes, type | None, list[_Look]]]:
        found = []
        for sizes in several:
            try:
                found.append((sizes, *_tried_with(session, name, args, kwargs, sizes)))
            except TraceError:
                raise
            except Exception as error:
                failures.append(error)
        return found

    found = tried(numpy_sizes.apart(symbols)) or tried(numpy_sizes.alike(symbols))
    small = tried(numpy_sizes.small(symbols))
    if len(found) < 2:
        if not found and not small and len({(type(one), str(one)) for one in failures}) == 1:
            _raise(failures[0].with_traceback(None))
        raise _refusal(session, name, "raises for most sizes that it was tried with")
    _, many, first = found[0]
    rest = [[(sizes, looks[place]) for sizes, _, looks in found] for place in range(len(first))]
    if len({(kind, len(looks)) for _, kind, looks in found}) > 1 or any(len({(
            one.kind, one.dtype, len(one.shape), one.shared, one.apart) for _, one in looks}) > 1 for looks in rest):
        raise _refusal(session, name, "gives another shape or dtype for other sizes")
    results: list[_Look] = []
    for place, looks in enumerate(rest):
        shapes = [(sizes, one.shape) for sizes, one in looks]
        at_small = [less[place].shape for _, _, less in small if len(less) == len(first)]
        shape = numpy_sizes.shape_of(session, name, fakes, shapes, at_small)
        strides = numpy_sizes.strides_of(
            shape, [one.shape for _, one in looks], [one.strides or () for _, one in looks])
        results.append(replace(first[place], shape=tuple(shape), strides=None if strides is None else tuple(strides)))
    return many, results


def _tried_with(
    session: Session, name: str, args: Any, kwargs: Any, sizes: numpy_sizes.Sizes,
) -> tuple[type | None, list[_Look]]:
    """The same for arrays of such sizes."""
    function = host_numpy.function_of(name)
    found: list[tuple[type | None, list[_Look]]] = []
    failures: list[Exception] = []
    for fill in _FILLS:
        with torch_internals.no_modes():
            given, named = _sample(session, args, fill, sizes), _sample(session, kwargs, fill, sizes)
            memory = [one for one in _leaves([given, named]) if is_a(one, (numpy.ndarray, torch.Tensor))]
            arrays = [one.detach().numpy() if is_a(one, torch.Tensor) else one for one in memory]
        before = [one.copy() for one in arrays]
        try:
            with warnings.catch_warnings(), numpy.errstate(all="ignore"), torch_internals.no_modes():
                warnings.simplefilter("ignore")
                result = function(*given, **named)
        except Exception as error:
            failures.append(error)
            continue
        if not all(map(numpy.array_equal, arrays, before)):
            raise _refusal(session, name, "writes what it is given")
        many = type(result) if is_a(result, (list, tuple)) else None
        looks = [_look(session, name, one, arrays) for one in (result if many else [result])]
        if any(look.shared for look in looks) and _is_of_constant(result, args, kwargs, arrays):
            raise _refusal(session, name, "gives an array from outside as it is")
        if found and found[0] != (many, looks):
            raise _refusal(session, name, "gives another shape or dtype for other values")
        found.append((many, looks))
    if not found and (is_a(failures[-1], numpy.linalg.LinAlgError) or name in host_numpy.WRITING):
        raise _refusal(session, name, "raises for all arrays that it was tried with")
    if not found:
        _raise(failures[-1].with_traceback(None))
    if any(type(one) is TypeError for one in failures):
        _raise(next(one for one in failures if type(one) is TypeError).with_traceback(None))
    return found[0]


def _is_of_constant(result: Any, args: Any, kwargs: Any, arrays: list[Any]) -> bool:
    """Whether a result is the memory of an array from outside."""
    operands = [one for one in _leaves([args, kwargs]) if is_a(one, (NumpyArray, torch.Tensor))
                and not is_a(one, NumpyScalar)]  # fmt: skip
    results = result if is_a(result, (list, tuple)) else [result]
    return any(
        is_a(operand, _Constant) and numpy.may_share_memory(array, numpy.asarray(one))
        for operand, array in zip(operands, arrays) for one in results
    )


@acts_for_user
def _raise(error: Exception) -> None:
    raise error


def _look(session: Session, name: str, value: Any, given: list[Any]) -> _Look:
    with torch_internals.no_modes():
        return _look_at(session, name, value, given)


def _look_at(session: Session, name: str, value: Any, given: list[Any]) -> _Look:
    kind = host_numpy.kind_of(value)
    if kind is None or (kind == "tensor" and (value.requires_grad or value.device.type != "cpu")):
        raise _refusal(session, name, f"gives a {type(value).__name__} that no Program carries")
    array = value.numpy() if kind == "tensor" else numpy.asarray(value)
    shared = kind not in ("generic", "number") and any(numpy.may_share_memory(array, one) for one in given)
    tensor = host_numpy.to_tensor(value)
    apart = shared and kind == "array" and not host_numpy.shareable(value)
    return _Look(kind, tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), shared, apart)


def _fake(session: Session, look: _Look) -> torch.Tensor:
    return torch_internals.empty_fake(session.fake_mode, look.shape, look.strides, look.dtype, torch.device("cpu"))


numpy_arrays.register(record)
