"""Operators of a tensor and a number, where the number is another in each row: the same with a tensor for the number.

    aten.lt.Scalar(%x, %n)     ->  aten.lt.Tensor(%x, the numbers as a batched tensor of x's dtype)

A number has no say about the dtype of a result beyond its kind, so the tensor that holds it gets the dtype that torch
would have it computed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.batching.machine import Machine
from runtime.batching.rows import Rows
from runtime.ir import Operator

_TWO: dict[str, Callable[..., torch.Tensor]] = {
    **{f"aten.{name}.Tensor": getattr(torch, name) for name in ("add", "sub", "mul", "div", "remainder", "fmod")},
    **{f"aten.{name}.Scalar": getattr(torch, name) for name in (
        "add", "sub", "mul", "div", "remainder", "fmod", "lt", "le", "gt", "ge", "eq", "ne",
    )},
    **{f"aten.{name}.Tensor_Scalar": getattr(torch, name) for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "pow",
    )},
    "aten.pow.Scalar": torch.pow,
    "aten.div.Tensor_mode": torch.div,
    "aten.floor_divide.default": torch.floor_divide,
}  # fmt: skip
"""Operators of two operands, of which either may be a number: what computes them from two tensors."""

_CHOICES = ("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.masked_fill.Scalar")
_FILLED = ("aten.full.default", "aten.scalar_tensor.default", "aten.full_like.default")


def with_tensors(machine: Machine, op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """The result, if the operator has a form with a tensor in a number's place."""
    if op.name in _TWO and len(args) == 2 and not any(isinstance(value, Rows) for value in kwargs.values()):
        pair = _pair(machine, args[0], args[1])
        return None if pair is None else _TWO[op.name](*pair, **kwargs)
    if op.name in _CHOICES and len(args) == 3 and not kwargs:
        masked = op.name == "aten.masked_fill.Scalar"
        flags, a, b = (args[1], args[2], args[0]) if masked else args
        pair = _pair(machine, a, b)
        if pair is None or (masked and pair[0].dtype != b.dtype):
            return None
        return torch.where(flags, *pair)
    if op.name == "aten.select.int" and isinstance(args[0], torch.Tensor) and isinstance(args[2], Rows):
        return _selected(machine, *args)
    if op.name in _FILLED:
        return _filled(machine, op, args, kwargs)
    return None


def _pair(machine: Machine, a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    if isinstance(a, torch.Tensor) and isinstance(b, Rows):
        number = _like(machine, b, a)
        return None if number is None else (a, number)
    if isinstance(b, torch.Tensor) and isinstance(a, Rows):
        number = _like(machine, a, b)
        return None if number is None else (number, b)
    return None


def _like(machine: Machine, number: Rows, tensor: torch.Tensor) -> torch.Tensor | None:
    """The numbers as they take part in an operator with this tensor; None where that is not plain."""
    kinds = {type(value) for value in number.values}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    dtype = tensor.dtype
    if dtype.is_complex or kind not in (bool, int, float):
        return None
    if kind is float and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    elif kind is int and dtype is torch.bool:
        dtype = torch.int64
    if dtype.is_floating_point and dtype.itemsize < 4:  # computed in more digits than the tensor has
        return None
    if not dtype.is_floating_point and kind is int:
        limits = torch.iinfo(dtype)
        if not all(limits.min <= value <= limits.max for value in number.values):
            return None
    return machine.domain.tensor(number.values, dtype, tensor.device)


def _selected(machine: Machine, tensor: torch.Tensor, dim: int, index: Rows) -> torch.Tensor | None:
    size = tensor.shape[dim] if -tensor.dim() <= dim < tensor.dim() else 0
    if not all(type(place) is int and -size <= place < size for place in index.values):
        return None  # one of them raises
    places = machine.domain.tensor([place % size for place in index.values], torch.int64, tensor.device)
    return torch.index_select(tensor, dim, places.reshape(1)).squeeze(dim)


def _filled(machine: Machine, op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """A tensor of one number, which is another in each row."""
    number, others = args[-1], args[:-1]
    dtype: torch.dtype | None
    if not isinstance(number, Rows) or not set(kwargs) <= {"dtype", "device", "layout", "pin_memory"}:
        return None
    dtype, device = kwargs.get("dtype"), kwargs.get("device")
    sizes = tuple(others[0]) if others else ()
    if op.name == "aten.full_like.default":
        like = others[0]
        dtype, device, sizes = dtype or like.dtype, device or like.device, tuple(like.shape)
    elif dtype is None:
        kind = type(number.values[0]) if others else float  # scalar_tensor gives floats
        dtype = {bool: torch.bool, int: torch.int64}.get(kind, torch.get_default_dtype())
    return machine.domain.tensor(number.values, dtype, device).expand(sizes).clone()


__all__ = ["with_tensors"]
