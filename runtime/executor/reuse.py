"""Results in the memory of an operand that dies: ``y = tanh(h)`` as ``y = h.tanh_()`` where nobody else can see ``h``.

    %5 : f32[8] = aten.mul.Tensor(%h, 1.5)          ->   v2 = f1(v1, 1.5)
    %6 : f32[8] = aten.tanh.default(%5)                  v3 = f2(v2)          with f2 = the binding of ``tanh_``

Three things must hold. The operand is *owned* and dies here (``runtime.executor.ownership``). It has the type of the
result, and the memory layout: it was itself made without gradients by an operator of ``LAID_OUT``, so its memory is
dense, and it is the first tensor of the call, which is the one that decides the layout of the result. And the call is
an ordinary one: under autocast types may be others than those of the trace, under ``vmap`` an operand may lack a
dimension, and a sparse tensor cannot take a dense result. The executor has another function for such calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import ArrayType, Dim, Operand, Operator, Program, TensorType, Variable
from runtime.ops import aten

POINTWISE = frozenset(
    f"aten.{name}"
    for name in (
        "add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar",
        "neg.default", "abs.default", "exp.default", "exp2.default", "expm1.default", "log.default", "log1p.default",
        "log2.default", "sqrt.default", "rsqrt.default", "square.default", "reciprocal.default", "sin.default",
        "cos.default", "tanh.default", "sigmoid.default", "relu.default", "silu.default", "erf.default",
        "floor.default", "ceil.default", "trunc.default", "pow.Tensor_Scalar", "pow.Tensor_Tensor",
        "maximum.default", "minimum.default", "clamp.default", "clamp_min.default", "clamp_max.default",
        "addcmul.default", "addcdiv.default", "lerp.Scalar", "lerp.Tensor", "logical_not.default",
        "bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_not.default",
        "tanh_backward.default", "sigmoid_backward.default", "silu_backward.default",
    )
)  # fmt: skip
"""Operators that read each element once, before they write the result's element in its place."""

LAID_OUT = POINTWISE | {
    f"aten.{name}"
    for name in (
        "zeros.default", "ones.default", "full.default", "zeros_like.default", "ones_like.default", "full_like.default",
        "arange.default", "arange.start", "clone.default", "rand.default", "randn.default", "rsub.Scalar",
        "eq.Tensor", "eq.Scalar", "ne.Tensor", "ne.Scalar", "lt.Tensor", "lt.Scalar", "le.Tensor", "le.Scalar",
        "gt.Tensor", "gt.Scalar", "ge.Tensor", "ge.Scalar", "mm.default", "bmm.default", "addmm.default", "mv.default",
        "sum.default", "sum.dim_IntList", "mean.default", "mean.dim", "cat.default", "stack.default", "gelu.default",
    )
}  # fmt: skip
"""Operators that make one tensor of dense memory: each of its dimensions longer than 1 has a stride of its own. None of
them gives a view: matmul and linear do, of vectors."""


@dataclass(frozen=True)
class Memory:
    """Where results may be written to memory that is there and that nobody else can see.

    pointwise: In the place of an operand. after_add: An activation, of a sum, likewise. before_depthwise: A relu that
    only depthwise convolutions read, likewise. gradients: Sums in backward halves, likewise. bases: What ``update``
    writes; else it writes a copy.
    """

    pointwise: bool = True
    after_add: bool = False
    before_depthwise: bool = False
    gradients: bool = False
    bases: bool = True


USUAL = Memory()
"""Wherever nobody else sees it."""

_ACTIVATIONS = frozenset(f"aten.{name}.default" for name in ("relu", "tanh", "sigmoid", "silu"))
_CONVOLUTIONS = frozenset({"aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default"})


def in_place(program: Program, memory: Memory, backward: bool) -> Callable[[Operator], bool]:
    """Which pointwise Operators may write their results in the place of operands."""
    if memory.pointwise:
        return lambda op: True
    made = {out: op for op in program.block.walk() for out in op.outputs}
    readers: dict[Variable, list[Operator]] = {}
    for op in program.block.walk():
        for var in op.inputs:
            readers.setdefault(var, []).append(op)

    def allowed(op: Operator) -> bool:
        first = op.args[0] if op.args else None
        if memory.gradients and backward and op.name == "aten.add.Tensor":
            return True
        if memory.after_add and op.name in _ACTIVATIONS and isinstance(first, Variable):
            maker = made.get(first)
            if maker is not None and maker.name == "aten.add.Tensor":
                return True
        if not memory.before_depthwise or op.name != "aten.relu.default":
            return False
        reading = readers.get(op.outputs[0], [])
        return bool(reading) and all(map(_is_depthwise, reading))

    return allowed


def _is_depthwise(op: Operator) -> bool:
    """Whether an Operator is a convolution of each channel by itself."""
    if op.name not in _CONVOLUTIONS or not isinstance(op.args[0], Variable):
        return False
    kind = op.args[0].type
    groups = op.args[6] if len(op.args) > 6 else op.kwargs.get("groups", 1)
    if not isinstance(kind, TensorType) or kind.shape is None or len(kind.shape) < 3 or type(groups) is not int:
        return False
    return groups > 1 and kind.shape[1] == groups


@dataclass(frozen=True)
class Written:
    """The call that writes the result to its operand: ``keyword`` names the argument it is given as once more."""

    function: Callable[..., Any]
    keyword: str | None


def candidate(op: Operator) -> Variable | None:
    """The operand that the result would fit in, whoever owns it; None if there is none."""
    if op.name not in POINTWISE or not op.outputs or op.autocast or aten.CHECKED in op.attrs:
        return None
    first, result = op.args[0] if op.args else None, op.outputs[0].type
    if not isinstance(first, Variable) or not isinstance(result, TensorType) or first.type != result:
        return None
    if result.dtype is None or result.shape is None:
        return None
    return first if all(_broadcasts(other, result.shape) for other in op.args[1:]) else None


def _broadcasts(operand: Operand, shape: tuple[Dim, ...]) -> bool:
    """Whether an operand has these sizes or 1, by their names: of two that are only taken for equal one may be 1."""
    if not isinstance(operand, Variable) or not isinstance(operand.type, TensorType):
        return True
    own = operand.type.shape
    return own is not None and len(own) <= len(shape) and all(
        size in (1, other) for size, other in zip(reversed(own), reversed(shape)))


def written(op: Operator) -> Written:
    """How an Operator of ``POINTWISE`` writes its result to its first operand."""
    return _written(op.name, len(op.args) <= 2 and not op.kwargs)


@functools.cache
def _written(name: str, plain: bool) -> Written:
    """``plain``: at most two operands. The faster door, the method, takes more of them in another order, too."""
    packet, _, overload = name.rpartition(".")
    own = getattr(torch.ops.aten, packet.removeprefix("aten.") + "_", None)
    if own is not None and overload in own.overloads():
        method = getattr(torch.Tensor, packet.removeprefix("aten.") + "_", None) if plain else None
        return Written(method or torch_internals.raw_call(getattr(own, overload)), None)
    functional = aten.resolve(name)
    for other in functional.overloadpacket.overloads():
        found = getattr(functional.overloadpacket, other)
        if found is not functional and aten.without_out(found) is functional:
            (out,) = (one.name for one in found._schema.arguments if one.is_out)
            return Written(torch_internals.raw_call(found), out)
    raise AssertionError(f"{name} has no overload that writes")


_OTHER_LAYOUTS = ("sparse", "mkldnn", "nested", "quantize", "_pin", "layout")


def strided(program: Program) -> bool:
    """Whether all tensors of a run are strided if those it is given are."""
    return all(map(_keeps_strided, program.block.walk()))


def _keeps_strided(op: Operator) -> bool:
    family = op.name.partition(".")[0]
    if family in ("scalar", "array", "grad"):
        return True
    if family != "aten":
        return bool(op.blocks) or not any(isinstance(out.type, (TensorType, ArrayType)) for out in op.outputs)
    return not any(word in op.name for word in _OTHER_LAYOUTS) and op.kwargs.get("layout") in (None, torch.strided)


def ordinary(inputs: Sequence[Any], params: Sequence[Any]) -> bool:
    """Whether nothing about a call makes an operator give another dtype, shape or layout than while tracing."""
    return (
        not torch_internals.changes_results()
        and all(tensor.layout is torch.strided for tensor in _tensors(inputs))
        and all(tensor.layout is torch.strided for tensor in _tensors(params))
    )


def _tensors(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list):
            yield from _tensors(value)
