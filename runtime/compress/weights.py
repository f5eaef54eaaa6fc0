"""Which tensors are weights: the parameters that a linear operator, a product or a convolution multiplies by.

    %t = aten.t.default(%w); %y = aten.mm.default(%x, %t)      %w is a weight, and its axis 0 makes the channels of %y
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from runtime.ir import Operator, Program, TensorType, Variable
from runtime.ops import aten

_LINEAR = {"linear": ("input", "weight", 0), "addmm": ("mat1", "mat2", 1), "mm": ("self", "mat2", 1),
           "matmul": ("self", "other", 1)}  # fmt: skip
"""By the operator: the name of what comes in, of the weight, and the weight's axis of output channels."""
_CONVOLUTIONS = {**{f"conv{n}d": n for n in (1, 2, 3)}, **{f"conv_transpose{n}d": n for n in (1, 2, 3)},
                 "convolution": None, "_convolution": None}  # fmt: skip
_SEEN = ("grad.named", "grad.leaf", "aten.alias.default", "aten.contiguous.default", "aten.clone.default",
         "aten.detach.default")  # fmt: skip
"""Operators that give the tensor that they are given."""


@dataclass(frozen=True, eq=False)
class Use:
    """An Operator that multiplies by a parameter.

    weight: the Variable that it is given, which may be a transposed parameter; axis: its axis of output channels;
    given: what comes in; param: the parameter; param_axis: the axis of output channels there.
    """

    op: Operator
    given: Variable
    weight: Variable
    axis: int
    param: Variable
    param_axis: int


def names_of(op: Operator) -> tuple[str, str, int] | None:
    """For an operator that multiplies: the names of what comes in and of the weight, and the weight's channel axis."""
    if not op.name.startswith("aten."):
        return None
    packet = op.name.split(".")[1]
    if packet in _LINEAR:
        return _LINEAR[packet]
    if packet not in _CONVOLUTIONS:
        return None
    bound = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    transposed = packet.startswith("conv_transpose") or bound.get("transposed") is True
    if transposed and bound["groups"] != 1:
        return None
    return "input", "weight", 1 if transposed else 0


def uses(program: Program) -> Iterator[Use]:
    """Every Operator of a Program, at any depth, that multiplies by a parameter."""
    makers = {out: op for op in program.block.walk() for out in op.outputs}
    params = {one.var for one in program.params}
    for op in program.block.walk():
        names = names_of(op)
        if names is None:
            continue
        bound = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
        given, weight, axis = bound[names[0]], bound[names[1]], names[2]
        if not isinstance(weight, Variable) or not isinstance(given, Variable) or (rank(weight) or 0) < 2:
            continue
        if op.name.startswith("aten.matmul") and rank(weight) != 2:
            continue
        param, param_axis = _origin(weight, axis, makers)
        if param in params:
            yield Use(op, given, weight, axis, param, param_axis)


def others(program: Program) -> Iterator[Operator]:
    """Operators that read a parameter of two or more axes in another way: a recurrent layer, a whole encoder layer."""
    params = {one.var for one in program.params if one.kind == "parameter" and (rank(one.var) or 0) >= 2}
    for op in program.block.walk():
        if not op.name.startswith("aten.") or names_of(op) is not None or params.isdisjoint(op.inputs):
            continue
        overload = aten.resolve(op.name)
        if not (torch.Tag.pointwise in overload.tags or aten.is_view(overload) or op.name in _SEEN):
            yield op


def _origin(weight: Variable, axis: int, makers: dict[Variable, Operator]) -> tuple[Variable, int]:
    """What a weight is a transposed form of, and its axis there."""
    while (op := makers.get(weight)) is not None and op.args and isinstance(op.args[0], Variable):
        if op.name == "aten.t.default" or (op.name in ("aten.transpose.int", "aten.permute.default") and swaps(op)):
            axis = 1 - axis
        elif op.name not in _SEEN:
            break
        weight = op.args[0]
    return weight, axis


def swaps(op: Operator) -> bool:
    """Whether a transposition swaps the two axes of a matrix."""
    dims = op.args[1] if op.name == "aten.permute.default" else op.args[1:3]
    if rank(op.args[0]) != 2 or not isinstance(dims, (list, tuple)) or not all(type(one) is int for one in dims):
        return False
    found = [one % 2 for one in dims]
    return found == [1, 0] if op.name == "aten.permute.default" else found[0] != found[1]


def rank(operand: object) -> int | None:
    """How many dimensions a tensor has; None if that is not known."""
    type_ = operand.type if isinstance(operand, Variable) else None
    return len(type_.shape) if isinstance(type_, TensorType) and type_.shape is not None else None


__all__ = ["Use", "names_of", "others", "rank", "uses"]
