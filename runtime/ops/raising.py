"""Which Operators may raise: an exception is an effect, and an Operator that may raise is no dead code.

Operators are taken to raise unless it is proven here that they do not, from their names, constants and types:

    aten.select.int(%x, 0, %i)                       may: %i may be out of range
    aten.transpose.int(%x : f32["s0", 3], 0, 1)      does not: there are two dimensions, whatever their sizes
    aten.add.Tensor(%x : f32["s0"], %y : f32["s0"])  does not: the sizes are one symbol
    aten.add.Tensor(%x : f32["s0"], %y : f32["s1"])  may
    scalar.truediv(1, %n)                            may: %n may be 0

What the trace ran on stand-ins has been checked as far as it depends on ranks, dtypes, constants and known sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.ir.operator import Operator, leaves
from runtime.ir.types import ArrayType, ScalarType, TensorType
from runtime.ir.variable import Operand, Variable
from runtime.ops import aten
from runtime.ops.arity import is_truth
from runtime.ops.registry import definition
from runtime.ops.scalar import TEXT_METHODS
from runtime.ops.update import may_overlap


def has_effect(op: Operator) -> bool:
    """Whether an Operator does anything but give results (it says something, draws random numbers), or may raise."""
    return does_more(op) or may_raise(op)


def does_more(op: Operator) -> bool:
    """Whether an Operator does anything but give results, apart from exceptions that come with computing them."""
    own = definition(op.name)
    if own.effect or own.random or may_overlap(op):
        return True
    blocks = op.blocks if own.own_gradient is None else op.blocks[:1]  # the others run when a gradient is asked for
    return any(does_more(one) for block in blocks for one in block.ops)


def may_raise(op: Operator) -> bool:
    """Whether running an Operator may end in an exception, as far as is known before the Program runs."""
    family, _, name = op.name.partition(".")
    if family == "aten":
        return _aten(op)
    if family == "scalar":
        return not _scalar(name, op.args, [_kind(arg) for arg in op.args])
    if family == "array":
        return name not in _LISTS and not (name == "slice" and _constant_step(op.args[1]))
    if family == "grad":  # our own, right by construction
        return definition(op.name).effect
    own = definition(op.name).raises
    blocks = op.blocks if definition(op.name).own_gradient is None else op.blocks[:1]
    return own is None or own(op) or any(may_raise(one) for block in blocks for one in block.ops)


# --- lists

_LISTS = frozenset({"new", "append", "len", "extend", "concat", "fill", "fill_each", "load", "store"})


def _constant_step(where: Operand) -> bool:
    return isinstance(where, slice) and where.step in (None, 1, -1)


# --- numbers

_WHOLE = ("int", "bool")
_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
_WHOLE_ONLY = frozenset({"and_", "or_", "xor", "bit_length"})


_OF_TEXT = frozenset({"len", "contains", *TEXT_METHODS}) - {"index", "rindex", "center", "ljust", "rjust", "replace"}


def _kind(operand: Operand) -> str:
    if isinstance(operand, Variable):
        return operand.type.kind if isinstance(operand.type, ScalarType) else "other"
    return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(operand), "other")


def _scalar(name: str, args: Sequence[Operand], kinds: list[str]) -> bool:
    """Whether a scalar operator surely gives a result. Ints have any length: they need not fit into a float."""
    whole, floats = all(kind in _WHOLE for kind in kinds), all(kind == "float" for kind in kinds)
    if name == "select" or name in ("not_", "bool", "is_none", "numel", "dim"):
        return True
    if name == "size":
        return not isinstance(args[1], Variable)
    if name in ("item", "truth"):
        return isinstance(args[0], Variable) and isinstance(args[0].type, TensorType) and is_truth(args[0])
    if name in ("neg", "pos", "abs", "min", "max", "add", "sub", "mul"):
        return whole or floats or (name == "add" and all(kind == "str" for kind in kinds))
    if name in _COMPARISONS:
        return all(kind in (*_WHOLE, "float") for kind in kinds) or name in ("eq", "ne")
    if name in _WHOLE_ONLY:
        return whole
    if name == "invert":  # of a bool it is deprecated: a warning, and an exception where these are errors
        return kinds[0] == "int"
    if name in ("truediv", "floordiv", "mod"):
        return not isinstance(args[1], Variable) and bool(args[1]) and (floats or (whole and name != "truediv"))
    if name in ("int", "float"):
        return len(args) == 1 and (whole if name == "int" else floats or kinds[0] == "bool")
    if name.startswith("str."):
        return name.removeprefix("str.") in _OF_TEXT and all(kind == "str" for kind in kinds)
    if name in ("str", "repr", "ascii"):  # an int of many digits has no text
        return floats or kinds[0] in ("bool", "str")
    return name in ("math.isnan", "math.isinf", "math.isfinite", "math.fabs", "is_integer") and floats


# --- tensors

_VIEWS_BY_RANK = frozenset({
    "alias", "detach", "t", "transpose", "permute", "unsqueeze", "squeeze", "numpy_T", "mT", "movedim", "swapaxes",
    "lift_fresh_copy", "lift_fresh", "slice", "view_as_real", "real",
})  # fmt: skip
"""Views that look at ranks, dtypes and constants alone."""

_VIEWS_BY_SIZE = frozenset({
    "view", "_unsafe_view", "reshape", "expand", "select", "narrow", "flatten", "unflatten", "diagonal", "unbind",
    "split", "split_with_sizes", "chunk", "as_strided",
})  # fmt: skip
"""Views that look at sizes and constants: checked while tracing where all of these are known."""

_ON_NUMBERS = frozenset({
    "add", "sub", "rsub", "mul", "neg", "abs", "eq", "ne", "lt", "le", "gt", "ge", "where", "maximum", "minimum",
    "clone", "contiguous", "zeros_like", "ones_like", "empty_like", "isnan", "logical_and", "logical_or", "logical_not",
    "sum", "_to_copy",
})  # fmt: skip
_ON_FLOATS = _ON_NUMBERS | frozenset({
    "div", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "tanh", "sigmoid", "relu", "silu", "erf",
    "mean", "square", "sign", "floor", "ceil", "full_like", "pow", "isinf", "isfinite",
})  # fmt: skip
"""Operators that take all values of all their dtypes, and sizes that broadcast. Whole numbers are not to be divided."""

_PRODUCTS = frozenset({"mm", "bmm", "linear", "addmm", "matmul"})
"""Products, of sizes that fit."""

_ROWS = frozenset({"softmax", "_softmax", "log_softmax", "_log_softmax", "gelu", "layer_norm"})
"""Operators on floats that look at ranks and constants besides."""

_NUMBERS = frozenset({torch.float32, torch.float64, torch.int64, torch.int32})
_FLOATS = frozenset({torch.float32, torch.float64})

_OF_SIZES = frozenset({
    "zeros", "ones", "empty", "full", "scalar_tensor", "new_zeros", "new_ones", "new_full", "arange",
})  # fmt: skip
_MOST = 1 << 24
"""More elements than this may be more than there is memory for."""


def _aten(op: Operator) -> bool:
    overload = aten.resolve(op.name)
    if (overload._schema.returns and not op.outputs) or aten.CHECKED in op.attrs:
        return True
    packet = op.name.split(".")[1]
    rule = next((rule for names, rule in _PROOFS if packet in names), None)
    if rule is None or aten.writes(overload) or any(isinstance(out.type, ArrayType) for out in op.outputs):
        return True
    types = [var.type for var in op.inputs if isinstance(var.type, TensorType)]
    return any(type_.shape is None or type_.dtype is None for type_ in types) or not rule(op, types)


def _rank_alone(op: Operator, types: list[Any]) -> bool:
    return len(types) == len(op.inputs) == 1


def _sizes_alone(op: Operator, types: list[Any]) -> bool:
    return _rank_alone(op, types) and all(type(size) is int for size in types[0].shape)


def _pointwise(op: Operator, types: list[Any]) -> bool:
    packet = op.name.split(".")[1]
    wholly = all(type_.dtype in _FLOATS or (packet == "where" and type_.dtype == torch.bool) for type_ in types)
    fits = wholly if packet not in _ON_NUMBERS else all(type_.dtype in _NUMBERS | {torch.bool} for type_ in types)
    logical = packet not in ("sub", "rsub", "neg", "abs") or (
        all(type_.dtype is not torch.bool for type_ in types) and not any(type(arg) is bool for arg in op.args))
    third = op.args[2] if packet in ("add", "sub", "rsub") and len(op.args) > 2 else 1  # where the other is a number
    scaled = op.kwargs.get("alpha", third)  # True is for tensors of bools alone, and a float is not for whole numbers
    logical = logical and (type(scaled) is int or (type(scaled) is float and wholly) or _is_float(scaled))
    numbers = all(
        type_.kind in ("float", "bool") and wholly
        for type_ in (var.type for var in op.inputs) if isinstance(type_, ScalarType)
    )  # fmt: skip
    known = all(isinstance(var.type, (TensorType, ScalarType)) for var in op.inputs)
    return known and fits and logical and numbers and _broadcast([type_.shape for type_ in types])


def _is_float(operand: Operand) -> bool:
    return isinstance(operand, Variable) and isinstance(operand.type, ScalarType) and operand.type.kind == "float"


def _broadcast(shapes: list[Any]) -> bool:
    """Whether sizes surely go together: from the right, each is 1 or the same number or symbol as the others."""
    for place in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-place] for shape in shapes if len(shape) >= place} - {1}
        if len(sizes) > 1:
            return False
    return True


def _sized(op: Operator, types: list[Any]) -> bool:
    if any(not isinstance(var.type, TensorType) for var in op.inputs) or any(leaves(op.kwargs)):
        return False
    shapes = [out.type.shape for out in op.outputs if isinstance(out.type, TensorType)]
    for shape in shapes:
        fixed = [size for size in shape or () if isinstance(size, int)]
        if shape is None or len(fixed) < len(shape) or math.prod(fixed) > _MOST:
            return False
    return True


def _fits(op: Operator, types: list[Any]) -> bool:
    """Whether a product's sizes surely go together: equal numbers, or one symbol."""
    packet = op.name.split(".")[1]
    dtypes = {type_.dtype for type_ in types}
    if len(types) != len(op.inputs) or len(dtypes) > 1 or not dtypes <= _FLOATS or op.kwargs or (
            len({type_.device for type_ in types}) > 1):  # fmt: skip
        return False
    shapes = [type_.shape for type_ in types]
    if packet == "linear":
        if len(shapes) < 2 or not shapes[0] or len(shapes[1]) != 2 or any(arg is None for arg in op.args[:2]):
            return False
        return shapes[0][-1] == shapes[1][1] and all(shape == shapes[1][:1] for shape in shapes[2:])
    ranks = [len(shape) for shape in shapes]
    if packet == "addmm":
        if ranks[1:] != [2, 2] or shapes[0] not in (shapes[2][1:], (shapes[1][0], shapes[2][1])):
            return False
        shapes = shapes[1:]
    elif ranks != ([3, 3] if packet == "bmm" else [2, 2]):
        return False
    a, b = shapes
    return a[-1] == b[-2] and a[:-2] == b[:-2]


def _in_rows(op: Operator, types: list[Any]) -> bool:
    """Whether an operator on rows surely finds the dimensions that it asks for."""
    packet = op.name.split(".")[1]
    if len(types) != len(op.inputs) or not all(type_.dtype in _FLOATS for type_ in types) or (
            len({(type_.dtype, type_.device) for type_ in types}) > 1):  # fmt: skip
        return False
    first = types[0].shape
    if packet == "gelu":
        return len(types) == 1
    if packet == "layer_norm":
        row = op.args[1]
        rest = [type_.shape for type_ in types[1:]]
        return isinstance(row, (list, tuple)) and 0 < len(row) <= len(first) and all(
            type(size) is int for size in row
        ) and all(shape == tuple(row) for shape in (first[len(first) - len(row) :], *rest))
    dim = op.args[1] if len(op.args) > 1 else None
    named = packet.startswith("_") and op.args[2:] == (False,)
    return type(dim) is int and -len(first) <= dim < len(first) and (named or len(op.args) == 2) and not op.kwargs


_PROOFS: list[tuple[frozenset[str], Callable[[Operator, list[Any]], bool]]] = [
    (_VIEWS_BY_RANK, _rank_alone),
    (_VIEWS_BY_SIZE, _sizes_alone),
    (_ON_FLOATS, _pointwise),
    (_OF_SIZES, _sized),
    (_PRODUCTS, _fits),
    (_ROWS, _in_rows),
]
"""ATen's operators by what they have to be given not to raise."""

__all__ = ["does_more", "has_effect", "may_raise"]
