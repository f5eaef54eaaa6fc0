"""``fake_quantize``: a pair of QuantizeLinear and DequantizeLinear; a weight is held in 8 bits.

    fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)     ->   DequantizeLinear(QuantizeLinear(x, 0.1, 3), 0.1, 3)
    fake_quantize_per_channel_affine(weight, scales, ...)  ->   DequantizeLinear(int8 weight, scales, axis=0)
    the same of a tensor that the run computes             ->   Round, Clip, Mul: the numbers as they are

QuantizeLinear takes the whole range of its dtype, so a smaller one (-127 to 127) is written with it only where the
numbers are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
import torch

from runtime.export.onnx.translator import Translator
from runtime.export.onnx.writer import Refused, Value, torch_dtype
from runtime.ir import Operator, Variable

_WHOLE = {(0, 255): torch.uint8, (-128, 127): torch.int8}


def fake_quantize(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    """Of all forms: one scale or one for each channel, as a number or a tensor."""
    x = t.value(bound["self"])
    if torch_dtype(x) is not torch.float32:
        raise Refused("fake_quantize of anything but float32")
    axis = bound.get("axis")
    scale, zero = _row(t, bound["scale"], torch.float32, axis), _row(t, bound["zero_point"], torch.int32, axis)
    low, high = bound["quant_min"], bound["quant_max"]
    held = _stored(t, x, scale, zero, axis, low, high)
    if held is not None:
        return held
    dtype = _WHOLE.get((low, high))
    numbers = _known(zero)
    if dtype is not None and numbers is not None and ((numbers >= low) & (numbers <= high)).all():
        return _pair(t, x, scale, t.w.constant(numbers.tolist(), dtype), axis, dtype)
    return _written_out(t, x, scale, zero, axis, low, high)


def _row(t: Translator, value: Any, dtype: torch.dtype, axis: int | None) -> Value:
    """A scale or zero point: a number, or one for each channel."""
    if not isinstance(value, Variable):
        return t.w.constant(value, dtype)
    found = t.value(value)
    if axis is None and (found.shape is None or len(found.shape)):
        found = t.w.node("Reshape", found, t.w.constant([], torch.int64), dtype=torch_dtype(found), shape=[])
    return found


def _known(value: Value) -> numpy.ndarray[Any, Any] | None:
    """The numbers of a constant."""
    return None if value.const_value is None else value.const_value.numpy()


def _stored(
    t: Translator, x: Value, scale: Value, zero: Value, axis: int | None, low: int, high: int
) -> Value | None:
    """A constant that is rounded now: its numbers in 8 bits, and a node that makes floats of them."""
    weight, scales, zeros = _known(x), _known(scale), _known(zero)
    if weight is None or scales is None or zeros is None or zeros.any() or not -128 <= low <= high <= 127:
        return None
    shape = [-1 if place == axis else 1 for place in range(weight.ndim)] if axis is not None else ()
    inverse = torch.tensor(1.0) / torch.from_numpy(numpy.array(scales))
    numbers = (torch.from_numpy(numpy.array(weight)) * inverse.reshape(shape)).round().clamp(low, high)
    held = t.w.constant(numbers.to(torch.int8).numpy(), torch.int8)
    return _floats(t, held, scale, t.w.constant(zeros.tolist(), torch.int8), axis, list(weight.shape))


def _pair(
    t: Translator, x: Value, scale: Value, zero: Value, axis: int | None, dtype: torch.dtype
) -> Value:
    shape = None if x.shape is None else list(x.shape)
    given: dict[str, Any] = {} if axis is None else {"axis": axis}
    made = t.w.node("QuantizeLinear", x, scale, zero, dtype=dtype, shape=shape, **given)
    return _floats(t, made, scale, zero, axis, shape)


def _floats(t: Translator, x: Value, scale: Value, zero: Value, axis: int | None, shape: Any) -> Value:
    given: dict[str, Any] = {} if axis is None else {"axis": axis}
    return t.w.node("DequantizeLinear", x, scale, zero, dtype=torch.float32, shape=shape, **given)


def _written_out(
    t: Translator, x: Value, scale: Value, zero: Value, axis: int | None, low: int, high: int
) -> Value:
    """What PyTorch computes, step by step."""
    w = t.w
    if axis is not None:
        if x.shape is None:
            raise Refused("a tensor whose number of dimensions only the run knows")
        sizes = w.ints(*(-1 if place == axis else 1 for place in range(len(x.shape))))
        scale, zero = (w.node("Reshape", one, sizes, dtype=torch_dtype(one)) for one in (scale, zero))
    zero = w.cast(zero, torch.float32)
    inverse = w.node("Reciprocal", scale, dtype=torch.float32)
    places = w.node("Round", w.node("Mul", x, inverse, like=x), like=x)
    places = w.node("Add", places, zero, like=x)
    places = w.node("Clip", places, w.constant(low, torch.float32), w.constant(high, torch.float32), like=x)
    return w.node("Mul", w.node("Sub", places, zero, like=x), scale, like=x)


RULES = dict.fromkeys(("aten.fake_quantize_per_tensor_affine", "aten.fake_quantize_per_channel_affine"), fake_quantize)

__all__ = ["RULES", "fake_quantize"]
