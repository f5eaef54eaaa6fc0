"""Quantisation: what comes into a product, and its weights, are rounded to 256 values (255 for weights).

    %y = linear(%x, %w, %b)    ->    %q = fake_quantize_per_tensor_affine(%x, 0.031, 12, 0, 255)
                                     %v = fake_quantize_per_channel_affine(%w, %scale, %zero, 0, -127, 127)
                                     %y = linear(%q, %v, %b)

A Program with these operators computes what one of 8-bit numbers computes, in floating point. It runs, trains (their
gradient is 1 inside of the range), saves and exports as any other; targets with 8-bit numbers see the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from runtime.compress.artefacts import all_variants, places_of, tensor_at
from runtime.compress.observe import Range, Ranges, observe
from runtime.compress.report import Left, Report, Weight
from runtime.compress.weights import Use, others, uses
from runtime.errors import StorageError
from runtime.ir import Block, Operand, Operator, Parameter, TensorType, Type, Variable
from runtime.ir.verify import verify
from runtime.ir.walk import Names, replace_in
from runtime.storage.artefact import MODES, WITHOUT_GRADIENTS, Artefact, Constant, Method, Variant

LEAST, MOST = 0, 255
"""The numbers of an activation."""
LARGEST = 127
"""The numbers of a weight are from -127 to 127."""
_SMALLEST = 1e-12
"""The least scale of a channel: one whose weights are all zero has it."""
PER_CHANNEL = "aten.fake_quantize_per_channel_affine.default"
PER_TENSOR = "aten.fake_quantize_per_tensor_affine.default"
OF_TENSOR = "aten.fake_quantize_per_tensor_affine.tensor_qparams"


def quantise(
    artefact: Artefact, batches: Iterable[Any], method: str, per_channel: bool, training: bool
) -> Report:
    """Quantise the products of a model, in place. Without ``training`` its Programs for training are left out.

    Errors raised: StorageError (D2S571) if nothing can be quantised, or if it was saved for training only; ValueError
    without batches.
    """
    if not training:
        keep_for_inference(artefact)
    ranges = observe(artefact, batches, method, MODES if training else ["eval"])
    left: list[Left] = []
    rows: dict[int, Weight] = {}
    for variant in all_variants(artefact):
        places = places_of(artefact, variant)
        work = _Quantiser(artefact, variant, ranges, per_channel, training)
        for use in work.sites:
            place = places[use.param]
            weight = tensor_at(artefact, place)
            scales = weight.shape[use.param_axis] if per_channel else 1
            rows[place] = _row(artefact, place, use, weight, scales, per_channel)
        left += work.left
        work.run()
    left = list(dict.fromkeys(left))
    if not rows:
        why = "; ".join(map(str, left)) or "no linear operator, product or convolution has a weight that is a parameter"
        raise StorageError(f"there is nothing to quantise: {why}", code="D2S571",
                           hint="Calibrate with batches that take these paths.")  # fmt: skip
    return Report(tuple(rows[place] for place in sorted(rows)), tuple(left))


def keep_for_inference(artefact: Artefact) -> None:
    """Leave the Programs for training out.

    Errors raised: StorageError (D2S571) for a method that was saved for training only.
    """
    for name, method in artefact.methods.items():
        if "eval" not in method.variants:
            raise StorageError(f"{name}() was saved for training only, and what is quantised is for inference",
                               hint="Save it for eval mode too: save(..., modes=('train', 'eval')).", code="D2S571")
        kept = ("eval", WITHOUT_GRADIENTS["eval"])
        artefact.methods[name] = Method(
            name, method.signature, {mode: one for mode, one in method.variants.items() if mode in kept},
            {mode: ones for mode, ones in method.others.items() if mode in kept})


def scale_of(weight: torch.Tensor, axis: int | None) -> torch.Tensor:
    """The scale of each channel of a weight along an axis, or one for all of it."""
    largest = weight.detach().abs()
    dims = [one for one in range(weight.dim()) if one != axis]
    return (largest.amax(dims) / float(LARGEST)).clamp_min(_SMALLEST)


def of_range(found: Range) -> tuple[float, int]:
    """The scale and zero point with which 0 to 255 are a range of numbers; zero is one of them.

    >>> of_range(Range(0.0, 127.5, 1)), of_range(Range(-63.75, 63.75, 1))
    ((0.5, 0), (0.5, 128))
    """
    low, high = min(found.low, 0.0), max(found.high, 0.0)
    scale = max((high - low) / (MOST - LEAST), _SMALLEST)
    return scale, max(LEAST, min(MOST, LEAST + round(-low / scale)))


def _row(artefact: Artefact, place: int, use: Use, weight: torch.Tensor, scales: int, per_channel: bool) -> Weight:
    scale = scale_of(weight, use.param_axis if per_channel else None)
    shape = [-1 if one == use.param_axis else 1 for one in range(weight.dim())]
    zeros = int((weight.detach() / (scale.view(shape) if per_channel else scale)).round().eq(0).sum())
    name = artefact.tensor_names()[place]
    sizes = tuple(weight.shape)
    return Weight(name, sizes, sizes, zeros, weight.numel() * weight.element_size(), weight.numel() + 4 * scales)


class _Quantiser:
    """One Program that is quantised."""

    def __init__(
        self, artefact: Artefact, variant: Variant, ranges: Ranges, per_channel: bool, training: bool
    ) -> None:  # fmt: skip
        self.artefact, self.variant, self.ranges = artefact, variant, ranges
        self.per_channel, self.training = per_channel, training
        self.program = variant.program
        self.names = Names(self.program)
        self.sites: list[Use] = []
        self.left: list[Left] = []
        self.after: dict[Variable, list[Operator]] = {}
        """Operators that come right after a Variable is made; parameters are made before the first one."""
        self.weights: dict[tuple[Variable, int], Variable] = {}
        self.new: list[tuple[Variable, Constant]] = []
        for use in uses(self.program):
            why = self._refused(use)
            if why:
                self.leave(use.op, why)
            else:
                self.sites.append(use)
        for op in others(self.program):
            self.leave(op, "it reads a weight, and is none of the products that are quantised")

    def leave(self, op: Operator, why: str) -> None:
        """Say that an Operator stays in float."""
        where = "" if op.location is None else f"{op.location.file}:{op.location.line}"
        self.left.append(Left(op.name, where, why))

    def _refused(self, use: Use) -> str:
        given, weight = use.given.type, use.weight.type
        if not all(isinstance(one, TensorType) and one.dtype is torch.float32 for one in (given, weight)):
            return "it is not computed in float32"
        if use.op.autocast is not None and any(enabled for _, enabled, _ in use.op.autocast):
            return "it runs under autocast"
        found = self.ranges.get(use.op)
        if found is None or not found.seen:
            return "no calibration batch came here"
        return "" if found.known else "what came in was not finite"

    def run(self) -> None:
        """Put the Operators in."""
        if not self.sites:
            return
        found = {use.op: use for use in self.sites}
        self.block(self.program.block, found)
        self.program.block.ops[:0] = [op for param in self.program.params for op in self.after.pop(param.var, [])]
        self.place(self.program.block)
        for var, constant in self.new:
            name = f"constant {len(self.artefact.tensors) + constant.index}"
            self.program.block.args.append(var)
            self.program.params.append(Parameter(var, name, "constant"))
        self.variant.params = (*self.variant.params, *(constant for _, constant in self.new))
        verify(self.program)

    def block(self, block: Block, found: dict[Operator, Use]) -> None:
        ops: list[Operator] = []
        known: dict[tuple[Variable, float, int], Variable] = {}
        for op in block.ops:
            for inner in op.blocks:
                self.block(inner, found)
            if op in found:
                use = found[op]
                scale, zero = of_range(self.ranges[op])
                key = (use.given, scale, zero)
                if key not in known:
                    made = self.made(PER_TENSOR, use.given.type, op, use.given, scale, zero, LEAST, MOST)
                    known[key] = made.outputs[0]
                    ops.append(made)
                replace_in(op, {use.given: known[key], use.weight: self.weight(use)})
            ops.append(op)
        block.ops[:] = ops

    def place(self, block: Block) -> None:
        """Put what comes after a Variable where it is made."""
        ops: list[Operator] = []
        for op in block.ops:
            for inner in op.blocks:
                self.place(inner)
            ops.append(op)
            for out in op.outputs:
                ops += self.after.pop(out, [])
        block.ops[:] = ops

    def made(self, name: str, type_: Type, at: Operator, *args: Operand) -> Operator:
        """A new Operator."""
        out = Variable(self.names.new(""), type_)
        return Operator(name, args, {}, (out,), location=at.location)

    def constant(self, stem: str, tensor: torch.Tensor) -> Variable:
        """A new constant of the artefact, as the Program sees it."""
        self.artefact.constants.append(tensor)
        var = Variable(self.names.new(stem), TensorType(tensor.dtype, tuple(tensor.shape),
                                                           None if tensor.device.type == "cpu" else tensor.device))
        self.new.append((var, Constant(len(self.artefact.constants) - 1)))
        return var

    def weight(self, use: Use) -> Variable:
        """A weight, rounded: once in a Program."""
        key = (use.weight, use.axis if self.per_channel else -1)
        if key in self.weights:
            return self.weights[key]
        weight, axis = use.weight, use.axis if self.per_channel else None
        place = places_of(self.artefact, self.variant)[use.param]
        tensor = tensor_at(self.artefact, place).detach()
        scale = scale_of(tensor, use.param_axis if self.per_channel else None)
        ops: list[Operator] = []
        given: Variable
        if self.training:
            given = self.scale_made(weight, axis, use.op, ops)
        elif self.per_channel:
            given = self.constant("scale", scale)
        else:
            ops.append(self.made(PER_TENSOR, weight.type, use.op, weight, float(scale), 0, -LARGEST, LARGEST))
        if not ops or self.training:
            zero = self.constant("zero", torch.zeros(scale.shape, dtype=torch.int32, device=scale.device))
            name, more = (PER_CHANNEL, [use.axis]) if self.per_channel else (OF_TENSOR, [])
            ops.append(self.made(name, weight.type, use.op, weight, given, zero, *more, -LARGEST, LARGEST))
        self.after.setdefault(weight, []).extend(ops)
        self.weights[key] = ops[-1].outputs[0]
        return ops[-1].outputs[0]

    def scale_made(self, weight: Variable, axis: int | None, at: Operator, ops: list[Operator]) -> Variable:
        """Operators that compute a weight's scale from the weight, through which no gradient goes."""
        type_ = weight.type
        assert isinstance(type_, TensorType) and type_.shape is not None
        small = replace(type_, shape=() if axis is None else (type_.shape[axis],))
        dims = [one for one in range(len(type_.shape)) if one != axis]
        steps: list[tuple[str, Type, tuple[Any, ...]]] = [
            ("aten.detach.default", type_, ()), ("aten.abs.default", type_, ()), ("aten.amax.default", small, (dims,)),
            ("aten.div.Tensor", small, (float(LARGEST),)), ("aten.clamp_min.default", small, (_SMALLEST,)),
        ]  # fmt: skip
        var = weight
        for name, made, rest in steps:
            ops.append(self.made(name, made, at, var, *rest))
            var = ops[-1].outputs[0]
        return var


__all__ = ["OF_TENSOR", "PER_CHANNEL", "PER_TENSOR", "keep_for_inference", "of_range", "quantise", "scale_of"]
