"""Numbers of 8 bits: weights are stored as they are rounded, and a linear operator between rounded numbers counts.

    %q = fake_quantize_per_tensor_affine(%x, 0.1, 3, 0, 255)
    %v = fake_quantize_per_channel_affine(%w, %scale, ...)   ->   %y = linear(%x, %w.8 : i8, %b) attrs {eight: ...}
    %y = linear(%q, %v, %b)

``store`` rewrites the Program before it is written in C. A weight that something else reads as well, a convolution
say, becomes floats again at each call: ``%f = _to_copy(%w.8); %v = mul(%f, %scale)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.export.c.arithmetic import spread
from runtime.export.c.elements import arguments, close, dense
from runtime.ir import Block, Operand, Operator, Parameter, Program, TensorType, Variable
from runtime.ir.walk import Names, uses
from runtime.native.lowering import Lowering, Rule
from runtime.native.pointwise import operand as operand_of
from runtime.native.values import Number, Tensor, Unsupported
from runtime.ops import aten

EIGHT = "eight"
"""The attribute of a linear operator that counts: a ``Rounded``."""
_OF_TENSOR = "aten.fake_quantize_per_tensor_affine.default"
_OF_CHANNELS = "aten.fake_quantize_per_channel_affine.default"
_SWAPS = ("aten.t.default",)
_LONGEST = (2**31 - 1) // (255 * 128)
"""The longest row whose products surely fit a sum of 32 bits."""


@dataclass(frozen=True)
class Rounded:
    """How what comes into a product is rounded, and the scale of the weight if it has one for all channels."""

    scale: float
    zero: int
    low: int
    high: int
    weight_scale: float | None


@dataclass(frozen=True, eq=False)
class _Stored:
    """A weight in 8 bits: as the Program sees it, its scales, or its only one, and their axis."""

    var: Variable
    scales: Variable | None
    scale: float
    axis: int


def store(program: Program, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Store the weights that a Program rounds in 8 bits, in place. Returns the parameters' tensors as they are now."""
    work = _Store(program, tensors)
    work.block(program.block)
    return work.finished()


class _Store:
    def __init__(self, program: Program, tensors: Sequence[torch.Tensor]) -> None:
        self.program = program
        self.names = Names(program)
        self.values: dict[Variable, torch.Tensor] = {one.var: tensor for one, tensor in zip(program.params, tensors)}
        self.called = {one.var: one.name for one in program.params}
        self.makers = {out: op for op in program.block.walk() for out in op.outputs}
        self.stored: dict[Variable, _Stored] = {}

    def block(self, block: Block) -> None:
        """Find what is stored, and let the linear operators read it; an Operator's weight stands before it."""
        for op in block.ops:
            for inner in op.blocks:
                self.block(inner)
            if op.name in (_OF_TENSOR, _OF_CHANNELS):
                self.weight(op)
            elif op.name == "aten.linear.default":
                self.linear(op)

    def weight(self, op: Operator) -> None:
        """Round a weight that is known now, as PyTorch does."""
        bound = arguments(op)
        value, scale, zero = (self.known(bound[name]) for name in ("self", "scale", "zero_point"))
        low, high = bound["quant_min"], bound["quant_max"]
        if value is None or scale is None or zero is None or value.dtype is not torch.float32 or zero.any():
            return
        if not -128 <= low <= high <= 127:
            return
        axis = bound.get("axis", -1)
        shape = [-1 if place == axis else 1 for place in range(value.dim())] if "axis" in bound else []
        scale = scale.to(torch.float32)
        numbers = (value * (1.0 / scale).reshape(shape)).round().clamp(low, high).to(torch.int8)
        rounded = aten.resolve(op.name)(value, *[self.known(one) if isinstance(one, Variable) else one
                                                 for one in op.args[1:]])  # fmt: skip
        if not torch.equal(numbers.float() * scale.reshape(shape), rounded):
            return
        var = Variable(self.names.new("eight"), TensorType(torch.int8, tuple(value.shape)))
        self.values[var] = numbers.contiguous()
        self.called[var] = f"{self.called[self.origin(bound['self'])]}, in 8 bits"
        per_channel = isinstance(bound["scale"], Variable)
        self.stored[op.outputs[0]] = _Stored(var, bound["scale"] if per_channel else None,
                                             0.0 if per_channel else float(bound["scale"]), axis)  # fmt: skip

    def origin(self, var: Variable) -> Variable:
        while var not in self.called:
            var = self.makers[var].args[0]
        return var

    def known(self, operand: Operand) -> torch.Tensor | None:
        """The value of a parameter, one whose axes are swapped, or a number."""
        if isinstance(operand, (int, float)):
            return torch.tensor(operand)
        if not isinstance(operand, Variable):
            return None
        if operand in self.values:
            return self.values[operand].detach()
        op = self.makers.get(operand)
        if op is None or op.name not in _SWAPS:
            return None
        found = self.known(op.args[0])
        return None if found is None else found.t()

    def linear(self, op: Operator) -> None:
        """Read a stored weight, and what comes in before it is rounded."""
        bound = arguments(op)
        found, given = self.stored.get(bound["weight"]), self.makers.get(bound["input"])
        if found is None or given is None or given.name != _OF_TENSOR or found.axis not in (0, -1):
            return
        call = arguments(given)
        told = [call[name] for name in ("scale", "zero_point", "quant_min", "quant_max")]
        shape = self.values[found.var].shape
        if any(isinstance(one, Variable) for one in told) or not 0 <= told[3] - told[2] <= 255:
            return
        if not told[2] <= told[1] <= told[3] or len(shape) != 2 or shape[1] > _LONGEST:
            return
        op.args = (call["self"], found.var, bound.get("bias"))
        op.kwargs = {} if found.scales is None else {"scales": found.scales}
        op.attrs = {**op.attrs, EIGHT: Rounded(float(told[0]), told[1], told[2], told[3],
                                               found.scale if found.scales is None else None)}  # fmt: skip

    def finished(self) -> list[torch.Tensor]:
        """Take out what nothing reads any more; floats where something still reads a weight."""
        program = self.program
        counts = uses(program)
        self.clean(program.block, counts)
        for var in self.values:
            if var not in program.block.args:
                program.block.args.append(var)
                program.params.append(Parameter(var, self.called[var], "constant"))
        counts = uses(program)
        gone = {one.var for one in program.params if not counts[one.var]}
        if self.stored:
            program.params[:] = [one for one in program.params if one.var not in gone]
            program.block.args[:] = [one for one in program.block.args if one not in gone]
        return [self.values[one.var] for one in program.params]

    def clean(self, block: Block, counts: dict[Variable, int]) -> None:
        ops: list[Operator] = []
        for op in reversed(block.ops):
            if op.name in (_OF_TENSOR, _OF_CHANNELS, *_SWAPS) and self.stored and not counts[op.outputs[0]]:
                for var in op.inputs:
                    counts[var] -= 1
                continue
            for inner in op.blocks:
                self.clean(inner, counts)
            found = self.stored.get(op.outputs[0]) if op.outputs else None
            if found is None:
                ops.append(op)
            else:
                for var in op.inputs:
                    counts[var] -= 1
                ops += reversed(self.floats(op, found))
        block.ops[:] = reversed(ops)

    def floats(self, op: Operator, found: _Stored) -> list[Operator]:
        """Operators that give the floats of a stored weight."""
        (out,) = op.outputs
        assert isinstance(out.type, TensorType) and out.type.shape is not None

        def made(name: str, type_: Any, *args: Operand, **kwargs: Operand) -> Operator:
            var = Variable(self.names.new(""), type_)
            return Operator(name, args, kwargs, (var,), location=op.location)

        wide = made("aten._to_copy.default", out.type, found.var, dtype=torch.float32)
        if found.scales is None:
            return [wide, Operator("aten.mul.Tensor", (wide.outputs[0], float(torch.tensor(found.scale))), {}, (out,),
                                   location=op.location)]  # fmt: skip
        sizes = [size if place == found.axis else 1 for place, size in enumerate(out.type.shape)]
        turned = made("aten.view.default", TensorType(torch.float32, tuple(sizes)), found.scales, sizes)
        return [wide, turned, Operator("aten.mul.Tensor", (wide.outputs[0], turned.outputs[0]), {}, (out,),
                                       location=op.location)]  # fmt: skip


# --- rules


def emit_counted(low: Lowering, op: Operator) -> None:
    """A linear operator of rounded numbers: products of whole numbers in a sum of 32 bits, made a float once."""
    how: Rounded = op.attrs[EIGHT]
    given = [one for one in (*op.args, op.kwargs.get("scales")) if one is not None]
    used = dense(low, *given)
    x, weight = used[:2]
    bias = used[2] if op.args[2] is not None else None
    scales = used[-1] if "scales" in op.kwargs else None
    w = low.w
    n, k = weight.dims
    if x.dtype is not torch.float32 or not x.rank:
        raise Unsupported("anything but rows of float32")
    if x.dims[-1] != k:
        w.bail(f"{x.dims[-1]} != {k}")
    rows = w.product(x.dims[:-1])
    made = low.fresh(torch.float32, (*x.dims[:-1], n))
    row = low.fresh(torch.int16, (4, k))
    one = f"(float){how.weight_scale!r}" if how.weight_scale is not None else "0"
    w.line(f"d2s_eight(p{made.n}, p{x.n}, {rows}, {n}, {k}, p{weight.n}, {f'p{scales.n}' if scales else '0'}, {one}, "
           f"(float){how.scale!r}, {how.zero}, {how.low}, {how.high}, {f'p{bias.n}' if bias else '0'}, p{row.n});")
    low.release(row)
    close(low, given, used)
    low.give(op.outputs[0], made)


def counted_or(rule: Rule) -> Rule:
    """The rule of a linear operator: another one where its numbers are floats."""

    def emit(low: Lowering, op: Operator) -> None:
        if EIGHT in op.attrs:
            emit_counted(low, op)
        else:
            rule(low, op)

    return emit


def emit_rounded(low: Lowering, op: Operator) -> None:
    """``fake_quantize`` of all forms: element by element."""
    call = arguments(op)
    x = low.tensor(call["self"])
    if x.dtype is not torch.float32 or (not x.rank and "axis" not in call and isinstance(call["scale"], Variable)):
        raise Unsupported("fake_quantize of anything but float32")
    rest = [_along(low, call[name], call.get("axis"), x.rank) for name in ("scale", "zero_point")]
    low_, high = call["quant_min"], call["quant_max"]
    if type(low_) is not int or type(high) is not int:
        raise Unsupported("a range that is computed")
    spread(low, op, [x, *rest], torch.float32,
           lambda t: f"d2s_rounded({t[0]}, (float){t[1]}, (float){t[2]}, {low_}, {high})")  # fmt: skip


def _along(low: Lowering, value: Operand, axis: int | None, rank: int) -> Tensor | Number:
    """A scale or zero point, as it goes with the other operand."""
    found = operand_of(low, value)
    if isinstance(found, Number):
        return found
    found = low.dense(low.memory(found))
    dims = (1,) * min(rank, 1) if axis is None else [found.dims[0] if place == axis else 1 for place in range(rank)]
    return Tensor(found.n, found.dtype, tuple(dims), order=tuple(range(len(dims))), mine=False)


NAMES: dict[Rule, list[str]] = {
    emit_rounded: ["fake_quantize_per_tensor_affine.default", "fake_quantize_per_tensor_affine.tensor_qparams",
                   "fake_quantize_per_channel_affine.default"],
}  # fmt: skip

__all__ = ["EIGHT", "NAMES", "Rounded", "counted_or", "store"]
