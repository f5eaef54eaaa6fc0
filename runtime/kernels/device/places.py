"""Rows at a place that the device computes: ``x[t]``, and ``out[n] = row``.

    %r : f32[8] = aten.select.int(%x, 0, %t)    ->    index_select at a tensor of one index, which is made to fit

An index that is out of range sets the flag that has the host run it all again: eager's IndexError is raised there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch

from runtime.ir import Operand, Operator, TensorType, Variable
from runtime.ir.types import said
from runtime.kernels.device.writer import NotOnDevice, Number, Value, Writer
from runtime.ops import aten


def _place(w: Writer, base: Variable, dim: Operand, index: Number, fixed: bool) -> tuple[int, Variable]:
    """The dimension from the front, and a tensor of the one index, which is in range."""
    of = base.type
    if not isinstance(of, TensorType) or of.shape is None or of.dtype is None or type(dim) is not int:
        raise NotOnDevice("a tensor of a shape that is not known")
    if index.kind == "float" or not -len(of.shape) <= dim < len(of.shape):
        raise NotOnDevice("no index")
    dim %= len(of.shape)
    known = of.shape[dim]
    if known == 0 or (not fixed and not isinstance(known, int)):
        raise NotOnDevice("a dimension that may be empty")
    at = w.on_device(index, "int")
    key = (at.var, dim, known, base if isinstance(known, str) else None, tuple(one.var for one in w.path))
    if key in w.known:
        return dim, w.known[key]
    size: Operand = known
    last: Operand = known - 1 if isinstance(known, int) else None
    if not isinstance(known, int):
        size = w.of_host("scalar.size", base, dim)
        last = w.of_host("scalar.sub", size, 1)
    positive = counted(w, at, size)
    inside = w.give("int", "aten.clamp.default", positive.var, 0, last)
    of_one = TensorType(torch.int64, (1,), said(w.device))
    found = w.known[key] = w.put("aten.reshape.default", [inside.var, [1]], of_one)
    return dim, found


def counted(w: Writer, index: Number, size: Operand) -> Number:
    """An index from the front, as Python counts it; fail where it is out of range."""
    at = w.on_device(index, "int")
    positive = w.give("int", "aten.where.self", w.give("bool", "aten.lt.Scalar", at.var, 0).var,
                      w.give("int", "aten.add.Tensor", at.var, size).var, at.var)  # fmt: skip
    w.fail(w.either(w.give("bool", "aten.lt.Scalar", positive.var, 0),
                    w.give("bool", "aten.ge.Scalar", positive.var, size)))  # fmt: skip
    return positive


def select(w: Writer, base: Variable, dim: Operand, index: Number, *, fixed: bool) -> Variable:
    """The row of a tensor at an index. fixed: somebody makes sure that it is not empty."""
    place, at = _place(w, base, dim, index, fixed)
    of = base.type
    assert isinstance(of, TensorType) and of.shape is not None
    before, after = of.shape[:place], of.shape[place + 1 :]
    row = w.put("aten.index_select.default", [base, place, at], TensorType(of.dtype, (*before, 1, *after), of.device))
    return w.put("aten.squeeze.dim", [row, place], TensorType(of.dtype, (*before, *after), of.device))


def write(w: Writer, op: Operator, value: Callable[[Operand], Value], fixed: Collection[Variable]) -> Variable:
    """An ``update`` of one row, or of what such a row is filled with. Errors raised: NotOnDevice for any other."""
    (block,) = op.blocks
    if len(op.args) != 1 or len(block.ops) != 2 or len(op.outputs) != 1:
        raise NotOnDevice("a write at a place that the device computes")
    row, copied = block.ops
    if row.name != "aten.select.int" or row.args[0] is not block.args[0] or copied.args[0] is not row.outputs[0]:
        raise NotOnDevice("a write at a place that the device computes")
    base = value(op.args[0])
    index = value(row.args[2])
    if not isinstance(base, Variable) or not isinstance(index, Number):
        raise NotOnDevice("a write of what the device computes")
    place, at = _place(w, base, row.args[1], index, base in fixed)
    of = base.type
    assert isinstance(of, TensorType) and of.shape is not None
    before, after = of.shape[:place], of.shape[place + 1 :]
    given: Any = value(copied.args[1]) if len(copied.args) == 2 and not copied.kwargs else None
    if copied.name in ("aten.fill_.Scalar", "aten.fill_.Tensor", "aten.copy_.default") and type(given) in (
        bool, int, float
    ):  # fmt: skip
        return w.put("aten.index_fill.int_Scalar", [base, place, at, given], of)
    if copied.name == "aten.fill_.Scalar" and isinstance(given, Number) and of.dtype in (torch.float64, torch.float32):
        given = given.var
    elif copied.name != "aten.copy_.default" or not isinstance(given, Variable):
        raise NotOnDevice(f"{copied.name} at a place that the device computes")
    source = given.type if isinstance(given, Variable) else None
    if not isinstance(source, TensorType) or source.dtype is None or source.shape is None:
        raise NotOnDevice("a tensor of a shape that is not known")
    if source.dtype is not of.dtype:
        if source.dtype.is_complex:
            raise NotOnDevice("a complex number that is written")
        given = w.put("aten.to.dtype", [given, of.dtype], TensorType(of.dtype, source.shape, source.device))
    if source.shape != (*before, *after):
        if not all(isinstance(size, int) for size in (*before, *after)) or len(source.shape) > len(before + after):
            raise NotOnDevice("a write that is broadcast to a shape that is not known")
        given = w.put("aten.expand.default", [given, [*before, *after]],
                      TensorType(of.dtype, (*before, *after), source.device))  # fmt: skip
    given = w.put("aten.unsqueeze.default", [given, place], TensorType(of.dtype, (*before, 1, *after), source.device))
    assert aten.resolve("aten.index_copy.default")
    return w.put("aten.index_copy.default", [base, place, at, given], of)


__all__ = ["counted", "select", "write"]
