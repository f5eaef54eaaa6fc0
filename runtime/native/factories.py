"""New tensors that depend on sizes and numbers only.

    aten.zeros.default([4, %n], dtype=torch.float32)      ->      memory of 4 * n floats, set to 0
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.ir import Operator
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest
from runtime.native.pointwise import FLOATS, element
from runtime.native.values import CTYPES, Number, Tensor, Unsupported
from runtime.ops import aten

_PLAIN = (None, False, torch.device("cpu"), torch.strided, torch.preserve_format, torch.contiguous_format)


def _filled(low: Lowering, op: Operator, like: Tensor | None, dims: Any, value: Number) -> None:
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    if any(call.get(name) not in _PLAIN for name in ("device", "layout", "pin_memory", "memory_format")):
        raise Unsupported("this kind of memory")
    dtype = call.get("dtype")
    if dtype is None:
        if like is not None:
            dtype = like.dtype
        elif value.kind == "float" or op.name.startswith(("aten.zeros", "aten.ones", "aten.empty")):
            dtype = torch.get_default_dtype()
        else:
            dtype = torch.int64 if value.kind == "int" else torch.bool
    if dtype not in CTYPES or (value.kind == "float" and dtype not in FLOATS):
        raise Unsupported(f"{dtype}")
    for dim in dims:
        if not isinstance(dim, int):
            low.w.bail(f"{dim} < 0")
    nest = Nest(tuple(dims), tuple(range(len(dims))))
    text = element(low, nest, value, dtype)
    made = low.blank(dtype, dims)
    if not dims:
        made.reg = low.w.local(made.ctype, "r")
        low.w.line(f"{made.reg} = {text};")
    else:
        low.flush()
        low.nest = nest
        nest.add(made, text)
    low.give(op.outputs[0], made)


def emit(low: Lowering, op: Operator) -> None:
    """``zeros``, ``ones``, ``full``, ``scalar_tensor``, and the same with the sizes or dtype of another tensor."""
    short = op.name.split(".")[1]
    base = short.removeprefix("new_").removesuffix("_like")
    args = list(op.args)
    like: Tensor | None = None
    if short.startswith("new_") or short.endswith("_like"):
        like = low.tensor(args.pop(0))
        if short.endswith("_like") and base != "empty" and (not like.straight or like.strides is not None):
            raise Unsupported("a layout")
    if base == "scalar_tensor":
        dims: Any = ()
        value = low.number(args[0])
        if op.kwargs.get("dtype") is None:
            raise Unsupported("a dtype")
    else:
        if short.endswith("_like"):
            assert like is not None
            dims = like.dims
        else:
            dims = low.sizes(args.pop(0))
        value = low.number(args[0] if base == "full" else {"ones": 1}.get(base, 0))
    if base == "empty":
        _unfilled(low, op, like, dims)
    else:
        _filled(low, op, like, dims, value)


def _unfilled(low: Lowering, op: Operator, like: Tensor | None, dims: Any) -> None:
    """Memory that is about to be written."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    if any(call.get(name) not in _PLAIN for name in ("device", "layout", "pin_memory", "memory_format")):
        raise Unsupported("this kind of memory")
    if like is None or not like.order or call.get("dtype") not in (None, like.dtype):
        raise Unsupported("another dtype")
    low.flush()
    made = low.blank(like.dtype, dims)
    made.order = like.order if like.strides is None else made.order
    if like.strides is not None and not like.straight:
        raise Unsupported("a layout")
    low.give(op.outputs[0], low.allocate(made))


def emit_arange(low: Lowering, op: Operator) -> None:
    """``arange`` of whole numbers."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    if any(call.get(name) not in _PLAIN for name in ("device", "layout", "pin_memory")):
        raise Unsupported("this kind of memory")
    start, end, step = (low.number(call.get(name, usual)) for name, usual in (("start", 0), ("end", 0), ("step", 1)))
    dtype = call.get("dtype") or torch.int64
    if any(one.kind != "int" for one in (start, end, step)) or dtype not in (torch.int64, torch.int32, *FLOATS):
        raise Unsupported("this range")
    numbers = [one.dim for one in (start, end, step)]
    made = low.blank(dtype, (0,))
    w = low.w
    if all(type(one) is int for one in numbers):
        known = range(*numbers)  # type: ignore[arg-type]
        first, stride, count = str(known.start), str(known.step), len(known)
        if numbers[2] < 0 or abs(known.start) > 1 << 40:  # type: ignore[operator]
            raise Unsupported("this range")
        made.dims = (count,)
    else:
        first, stride, length = (w.local("i64", "z") for _ in range(3))
        w.line(f"{first} = {start.text}; {stride} = {step.text};")
        w.bail(f"{stride} <= 0 || {stride} > 0x7fffffff || {first} < -0x7fffffff || {first} > 0x7fffffff || "
               f"{end.text} > ((i64)1 << 40) || {end.text} < {first}")  # fmt: skip
        w.line(f"{length} = ({end.text} - {first} + {stride} - 1) / {stride};")
        made.dims = (length,)
    low.allocate(made)
    w.line(f"for (i64 i = 0; i < {made.dims[0]}; i++) p{made.n}[i] = ({made.ctype})({first} + i * {stride});")
    low.give(op.outputs[0], made)
