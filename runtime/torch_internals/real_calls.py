"""Does an operator whose shape rule raised raise on real tensors as well? It is tried on tensors that look alike."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from runtime.torch_internals.fakes import storage_identity
from runtime.torch_internals.modes import no_modes, rng_restored, rng_state

_LARGEST = 1 << 22
"""Elements of the tensors that are made for a try."""
_TRIED = (4, 7, 1, 0)
"""What sizes and numbers that are not known are taken to be."""


class _NotTried(Exception):
    """Such arguments cannot be made."""


def real_errors(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Exception | None]:
    """What an ATen operator raises on real tensors that look like fake ones, for each of some values of what is not
    known (None: nothing); empty if it cannot be tried."""
    if not _can_be_tried(func, args, kwargs):
        return []
    unknown = is_unknown((*args, *kwargs.values()))
    found: list[Exception | None] = []
    for number in _TRIED if unknown else _TRIED[:1]:
        with no_modes(), rng_restored(rng_state()), torch.no_grad():
            made: dict[int, torch.Tensor] = {}
            try:
                given = [_real(arg, number, made) for arg in args]
                named = {key: _real(value, number, made) for key, value in kwargs.items()}
            except (_NotTried, RuntimeError):
                continue
            error: Exception | None = None
            try:
                func(*given, **named)
            except Exception as raised:
                raised.__traceback__ = None
                error = raised
            found.append(error)
    return found


def out_shapes(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[int, ...]] | None:
    """The shapes that a call gives its ``out=`` tensors, tried on real ones; None if it raises, or cannot be tried."""
    if not _can_be_tried(func, args, kwargs) or is_unknown((*args, *kwargs.values())):
        return None
    names = [argument.name for argument in func._schema.arguments if argument.is_out]
    with no_modes(), rng_restored(rng_state()), torch.no_grad():
        try:
            made: dict[int, torch.Tensor] = {}
            named = {key: _real(value, 0, made) for key, value in kwargs.items()}
            func(*[_real(arg, 0, made) for arg in args], **named)
        except Exception:
            return None
        outs = [named[name] for name in names if name in named]
        return [tuple(one.shape) for out in outs for one in (out if isinstance(out, (list, tuple)) else [out])]


def _can_be_tried(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    given = [*args, *kwargs.values()]
    if func.namespace not in ("aten", "prims") or any(isinstance(one, torch.Generator) for one in given):
        return False
    return not (func._schema.is_mutable and _share_memory(given))


def graph_error(func: Any, args: Sequence[Any], kwargs: dict[str, Any], needs: Mapping[int, bool]) -> str | None:
    """What autograd says of a call with ``out=`` that it cannot record; None if it says nothing of the kind.

    ``needs`` holds the ids of the fake tensors that stand for tensors which require grad, and whether these are leaves.
    The call is tried on real tensors that look alike, in a thread of its own, which has none of the modes of this one.
    """
    said: list[str] = []

    def try_it() -> None:
        for number in _TRIED:
            with contextlib.suppress(Exception):
                made: dict[int, torch.Tensor] = {}
                given = [_real(arg, number, made, needs) for arg in args]
                named = {key: _real(value, number, made, needs) for key, value in kwargs.items()}
                try:
                    func(*given, **named)
                except RuntimeError as error:
                    said.extend([str(error)] if _NO_GRAPH in str(error) else [])
                return

    with rng_restored(rng_state()):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    return said[0] if said else None


_NO_GRAPH = "don't support automatic differentiation"


def _share_memory(values: Any) -> bool:
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    for value in values:
        if isinstance(value, (list, tuple)):
            tensors += [item for item in value if isinstance(item, torch.Tensor)]
    distinct = {id(tensor): tensor for tensor in tensors}.values()
    return len({storage_identity(tensor) for tensor in distinct if tensor.layout is torch.strided}) < len(distinct)


def is_unknown(values: Any) -> bool:
    """Whether a size or number among the arguments of a call is not known."""
    return any(map(_is_unknown, values))


def _is_unknown(value: Any) -> bool:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return True
    if isinstance(value, FakeTensor):
        return any(type(size) is not int for size in value.shape)
    return isinstance(value, (list, tuple)) and any(map(_is_unknown, value))


def _real(
    value: Any, number: int, made: dict[int, torch.Tensor], needs: Mapping[int, bool] = MappingProxyType({})
) -> Any:
    """A value that looks alike; ``made`` holds the tensors made so far: one that is given twice is one."""
    if isinstance(value, torch.SymBool):
        return bool(number)
    if isinstance(value, torch.SymFloat):
        return float(number)
    if isinstance(value, torch.SymInt):
        return _size(value, number)
    if isinstance(value, torch.Tensor):
        if id(value) not in made:
            one = _tensor(value, number).requires_grad_(id(value) in needs)
            made[id(value)] = one if needs.get(id(value), True) else one.clone()
        return made[id(value)]
    if type(value) in (list, tuple):
        return type(value)(_real(item, number, made, needs) for item in value)
    return value


def _size(value: Any, number: int) -> int:
    if type(value) is int:
        return value
    expr = value.node.expr
    with contextlib.suppress(TypeError, ValueError):
        return int(expr.xreplace(dict.fromkeys(expr.free_symbols, number)))
    raise _NotTried


def _tensor(fake: torch.Tensor, number: int) -> torch.Tensor:
    if fake.layout is not torch.strided:
        raise _NotTried
    shape = [_size(size, number) for size in fake.shape]
    strides = [_size(stride, number) for stride in fake.stride()]
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if math.prod(shape) else 0
    if max(extent, math.prod(shape)) > _LARGEST or min(shape, default=0) < 0:
        raise _NotTried
    memory = torch.zeros(max(extent, 1), dtype=fake.dtype, device=fake.device)
    return memory.as_strided(shape, strides)


__all__ = ["graph_error", "is_unknown", "out_shapes", "real_errors"]
