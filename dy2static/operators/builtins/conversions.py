"""Functions that make tensors of Python data, and torch's questions about values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch

from dy2static.operators.calls import growing, numpy_arrays, staged_arguments
from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import StagedRange, StagedSize
from dy2static.operators.calls.torch_values import to_torch
from dy2static.operators.constructs import user_methods
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.iteration import grown_tensor
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.provenance.observed import with_users_methods
from dy2static.operators.shared.staging import (
    Choice,
    Session,
    Staged,
    any_staged,
    distribute,
    held_choice,
    spread,
)
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.ops.scalar import kind_of_dtype
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers.scalars import StagedStr
from runtime.tracer.values import array


def _tensor(function: Callable[..., Any]) -> Callable[..., Any]:
    def make(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) > 1:
            return theirs(function, *args, **kwargs)  # it takes one, and says so
        name = "obj" if function is torch.asarray else "data"
        if args and name in kwargs or not args and name not in kwargs:
            return theirs(function, *args, **kwargs)
        data = args[0] if args else kwargs[name]
        options = {key: value for key, value in kwargs.items() if key != name}
        asked = list(options.values())
        if held_choice(asked) is not None:
            return spread(session, asked, lambda given: make(session, (data,), dict(zip(options, given))))
        if any_staged(asked):
            return staged_arguments.decided(
                session, function, (), options, lambda _, plain: make(session, (data,), plain))
        if held_choice(data) is not None:
            return spread(session, data, lambda given: make(session, (given,), options))
        data = numpy_arrays.as_data(session, function, data)
        if is_a(data, StagedRange):
            return _of_range(session, data, options)
        data = _without_ranges(data)
        if not _holds_values(data) or is_a(data, torch.Tensor):
            with with_users_methods(session, [data]):
                return function(*args, **kwargs)
        if options.pop("requires_grad", False):
            return _leaf(session, make(session, (data,), options))
        dtype = options.get("dtype") or _common_dtype(session, data)
        _require_regular(data, dtype)
        device, given = options.get("device"), options.get("dtype") is not None
        inner = None if given or dtype == torch.get_default_dtype() else _inner_grown(data)
        if inner is None:
            result = _build(session, data, dtype, device, given)
        else:  # without items another dtype
            result = if_expr(array.length(session, inner) == 0,
                             lambda: _build(session, data, torch.get_default_dtype(), device).detach(),
                             lambda: _build(session, data, dtype, device).detach())  # fmt: skip
        if is_a(result, Choice):  # without items another dtype
            return result
        return result.detach() if is_a(data, (list, tuple)) and (_holds_tensors(data) or _has_grown(data)) \
            else result

    return make


def _leaf(session: Session, tensor: Any) -> Any:
    """A new tensor, as a leaf."""
    if is_a(tensor, Choice):
        return distribute(session, tensor, lambda option: _leaf(session, option))
    with torch_internals.no_modes():
        theirs(torch.tensor, 0, dtype=tensor.dtype, requires_grad=True)  # for what it says of other dtypes
    return call(tensor.requires_grad_)


def _require_regular(data: Any, dtype: torch.dtype) -> None:
    """Errors raised: ValueError, TypeError: the lists inside are not as long as each other; in PyTorch's words."""

    def plain(value: Any) -> Any:
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else 0

    if type(data) in (list, tuple) and not _holds_tensors(data) and not _has_grown(data) and (
            any(type(one) in (list, tuple) for one in data)):  # fmt: skip
        with torch_internals.no_modes():
            theirs(torch.tensor, plain(data), dtype=dtype)


def _of_range(session: Session, data: StagedRange, options: dict[str, Any]) -> Any:
    """The numbers of a range; without any the default dtype is inferred."""

    def made() -> torch.Tensor:
        stop = data.stop
        if options.get("dtype") is not None and not (type(data.start) is int and data.start == 0):
            stop = data.start + data.length(session) * data.step  # arange takes no stop before the start
        bounds = (to_torch(session, bound) for bound in (data.start, stop, data.step))
        return torch.arange(*bounds, **{"dtype": torch.int64, **options})

    if options.get("dtype") is not None:
        return made()
    options = {name: value for name, value in options.items() if name != "dtype"}
    return if_expr(data.length(session) == 0, lambda: torch.empty(0, **options), made)


def _without_ranges(data: Any) -> Any:
    """Lists of which some hold ranges, with lists in their place where only the run knows something in them."""
    inside = list(walk([data], _items, _DEEPEST)) if is_a(data, (list, tuple)) else []
    if not any(is_a(one, StagedRange) for one in inside) and not (
            any(is_a(one, range) for one in inside) and _holds_values(data)):
        return data
    return [call(list, one) if is_a(one, (range, StagedRange)) else _without_ranges(one) for one in data]


def _holds_values(data: Any) -> bool:
    return any_staged([data]) or _holds_tensors(data) or _has_grown(data)


def _has_grown(data: Any) -> bool:
    """Whether a list is inside, or is it, whose length is only known while the Program runs."""
    return any(is_a(one, (list, tuple)) and growing.is_growing(one) for one in walk([data], _items, _DEEPEST))


def _inner_grown(data: Any) -> Any:
    """The first list inside, on any level, whose length is only known while the Program runs; the lists of a level are
    as long as each other."""
    if growing.is_growing(data) or not is_a(data, (list, tuple)):
        return None
    return next((one for one in walk([data], _items, _DEEPEST) if growing.is_growing(one)), None)


def _holds_tensors(data: Any) -> bool:
    return any(is_a(one, torch.Tensor) for one in walk([data], _items, _DEEPEST))


def _items(data: Any) -> Any:
    """What a list or tuple holds; of one that has grown only the run knows."""
    return data if is_a(data, (list, tuple)) and not growing.is_growing(data) else ()


_DEEPEST = 128
"""``torch.tensor`` takes no data of more dimensions."""


def _common_dtype(session: Session, data: Any) -> torch.dtype:
    """The dtype that ``torch.tensor`` infers."""
    if is_a(data, torch.Tensor):
        return session.fake(data).dtype
    if growing.is_growing(data):
        return grown_tensor.common_dtype(session, data)
    if is_a(data, (list, tuple)):
        if any(is_a(item, (str, StagedStr)) for item in data):
            raise ValueError("too many dimensions 'str'")
        found = [_common_dtype(session, item) for item in data]
        if not found:
            return torch.get_default_dtype()
        result = found[0]
        for other in found[1:]:
            result = torch.promote_types(result, other)
        return result
    if is_a(data, numpy.generic) and hasattr(torch, data.dtype.name):
        named: torch.dtype = getattr(torch, data.dtype.name)
        return named
    kind = data.kind if is_a(data, Staged) else type(data).__name__
    table = {"bool": torch.bool, "int": torch.int64, "float": torch.get_default_dtype()}
    if kind == "complex":
        return torch.complex128 if torch.get_default_dtype() is torch.float64 else torch.complex64
    if kind not in table:
        theirs(torch.tensor, [data])  # which says that it knows no such thing
        raise TypeError(f"must be real number, not {kind}")
    return table[kind]


def _build(session: Session, data: Any, dtype: torch.dtype, device: Any, given: bool = True) -> torch.Tensor:
    """``given``: whether the user said the dtype, which is then that of a tensor without items, too."""
    if growing.is_growing(data):
        empty = torch.empty(0, dtype=dtype if given else torch.get_default_dtype(), device=device)
        return grown_tensor.stacked(session, data, lambda item: _build(session, item, dtype, device), empty)
    if is_a(data, (list, tuple)):
        if not data:
            return torch.empty(0, dtype=dtype, device=device)
        return torch.stack([_build(session, item, dtype, device) for item in data])
    if is_a(data, torch.Tensor):
        fake = session.fake(data)
        if not dtype.is_floating_point and not dtype.is_complex and (fake.is_floating_point() or fake.is_complex()):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if fake.dim():
            if fake.numel() != 1:
                raise ValueError("only one element tensors can be converted to Python scalars")
            data = data.reshape(())
        return data.to(dtype=dtype, device=device) if device is not None else data.to(dtype)
    if is_a(data, Staged):
        wanted = kind_of_dtype(dtype)
        if wanted != data.kind and wanted in ("int", "float", "bool"):
            data = session.scalar(wanted, data)
        return torch.scalar_tensor(to_torch(session, data), dtype=dtype, device=device)
    return torch.tensor(data, dtype=dtype, device=device)


def _size(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    note_answers(session, *args)
    if len(args) == 1 and type(args[0]) in (list, tuple):
        args = (type(args[0])(user_methods.as_number(session, size, "__index__") for size in args[0]),)
    if len(args) == 1 and any_staged(args):
        return StagedSize(args[0])
    return StagedSize(torch.Size(*args))  # may meet staged sizes later


def _yes_no(answer: bool) -> Callable[..., Any]:
    return lambda session, args, kwargs: answer


HANDLERS: list[tuple[Any, Any]] = [
    (torch.tensor, _tensor(torch.tensor)), (torch.as_tensor, _tensor(torch.as_tensor)),
    (torch.asarray, _tensor(torch.asarray)), (torch.Size, _size),
    (torch.compiler.is_compiling, _yes_no(False)), (torch.compiler.is_exporting, _yes_no(False)),
    (torch.jit.is_tracing, _yes_no(False)), (torch.jit.is_scripting, _yes_no(False)),
]  # fmt: skip

