"""The largest and smallest of tensors, where ONNX Runtime passes over NaN and PyTorch does not.

    max(1, nan) is nan, and argmax says where that is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from runtime.export.onnx.translator import Translator, shape_of
from runtime.export.onnx.writer import Value, torch_dtype
from runtime.ir import Operator, TensorType, Variable


def with_nan(t: Translator, op: Operator, bound: Mapping[str, Any], made: Any) -> Any:
    """What a converter made of an operator that gives extremes, or where they are, with NaN as PyTorch has it."""
    operand = bound["self"]
    assert isinstance(operand, Variable)
    shape = shape_of(operand.type)
    if not isinstance(operand.type, TensorType) or not t.dtype(operand.type).is_floating_point or shape == ():
        return made
    w = t.w
    value = t.value(operand)
    flags = w.node("Cast", w.node("IsNaN", value, dtype=torch.bool), dtype=torch.int32, to=6)
    dim, keep = bound.get("dim"), int(bound.get("keepdim", False))
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    some = w.node("Cast", _reduced(t, flags, dims, keep), dtype=torch.bool, to=9)
    if op.name.startswith(("aten.argmax.", "aten.argmin.")):
        return _where(t, some, _first(t, flags, dim, keep), made)
    nan = w.constant(float("nan"), torch_dtype(value))
    if not isinstance(made, (list, tuple)):
        return _where(t, some, nan, made)
    values, places = made
    return [_where(t, some, nan, values), _where(t, some, _first(t, flags, dim, keep), places)]


def _where(t: Translator, flag: Value, a: Value, b: Value) -> Value:
    return t.w.node("Where", flag, a, b, dtype=torch_dtype(a))


def _reduced(t: Translator, flags: Value, dims: Sequence[int], keep: int) -> Value:
    axes = [t.w.ints(*dims)] if dims else []
    return t.w.node("ReduceMax", flags, *axes, dtype=torch.int32, keepdims=keep)


def _first(t: Translator, flags: Value, dim: int | None, keep: int) -> Value:
    if dim is None:
        flags, dim, keep = t.w.node("Reshape", flags, t.w.ints(-1), dtype=torch.int32), 0, 0
    return t.w.node("ArgMax", flags, dtype=torch.int64, axis=dim, keepdims=keep)


def clamped(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    """``clamp``, ``clamp_min``, ``clamp_max``: infinite values stay what they are."""
    w, type_ = t.w, op.outputs[0].type
    dtype = t.dtype(type_)
    made = t.value(bound["self"], dtype)
    for name, operator in (("min", "Max"), ("max", "Min")):
        if bound.get(name) is not None:
            made = w.node(operator, made, t.value(bound[name], dtype), dtype=dtype, shape=shape_of(type_))
    return made


def sign(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    """``sign``: 0 of NaN."""
    w, type_ = t.w, op.outputs[0].type
    value = t.value(bound["self"])
    dtype = torch_dtype(value)
    zero = w.constant(0, dtype)
    above, below = (w.cast(w.node(test, value, zero, dtype=torch.bool), dtype) for test in ("Greater", "Less"))
    return w.node("Sub", above, below, dtype=dtype, shape=shape_of(type_))


NAMES = frozenset(f"aten.{name}" for name in (
    "max.default", "max.dim", "min.default", "min.dim", "amax.default", "amin.default", "argmax.default",
    "argmin.default"))  # fmt: skip
"""The operators for which ``with_nan`` is."""

__all__ = ["NAMES", "clamped", "sign", "with_nan"]
