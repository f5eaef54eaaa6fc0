"""Does an operator whose shape rule raised raise on real tensors as well? It is tried on tensors that look alike."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
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
    if func.namespace not in ("aten", "prims") or any(tag.name == "nondeterministic_seeded" for tag in func.tags):
        return []
    if func._schema.is_mutable and _share_memory([*args, *kwargs.values()]):
        return []
    unknown = is_unknown((*args, *kwargs.values()))
    found: list[Exception | None] = []
    for number in _TRIED if unknown else _TRIED[:1]:
        with no_modes(), rng_restored(rng_state()), torch.no_grad():
            try:
                given = [_real(arg, number) for arg in args]
                named = {key: _real(value, number) for key, value in kwargs.items()}
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


def _real(value: Any, number: int) -> Any:
    if isinstance(value, torch.SymBool):
        return bool(number)
    if isinstance(value, torch.SymFloat):
        return float(number)
    if isinstance(value, torch.SymInt):
        return _size(value, number)
    if isinstance(value, torch.Tensor):
        return _tensor(value, number)
    if type(value) in (list, tuple):
        return type(value)(_real(item, number) for item in value)
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


__all__ = ["is_unknown", "real_errors"]
