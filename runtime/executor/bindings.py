"""Faster doors to the same overloads: PyTorch's generated Python bindings cost half of a call through ``torch.ops``.

A row may stand here only if, for operands of the types it asks for, the binding parses to exactly that overload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime.ir import Operator, ScalarType, TensorType, Variable

_T = "tensor"
_I = "int"
_N = "number"
"""An int or a float, no bool."""
_L = "ints"

_ROWS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "aten.select.int": (torch.select, (_T, _I, _I)),
    "aten.copy_.default": (torch.Tensor.copy_, (_T, _T)),
    "aten.add.Tensor": (torch.add, (_T, _T)),
    "aten.sub.Tensor": (torch.sub, (_T, _T)),
    "aten.mul.Tensor": (torch.mul, (_T, _T)),
    "aten.div.Tensor": (torch.div, (_T, _T)),
    "aten.lt.Tensor": (torch.lt, (_T, _T)),
    "aten.gt.Tensor": (torch.gt, (_T, _T)),
    "aten.matmul.default": (torch.matmul, (_T, _T)),
    "aten.mm.default": (torch.mm, (_T, _T)),
    "aten.linear.default": (torch.nn.functional.linear, (_T, _T, _T)),
    "aten.tanh.default": (torch.tanh, (_T,)),
    "aten.sigmoid.default": (torch.sigmoid, (_T,)),
    "aten.relu.default": (torch.relu, (_T,)),
    "aten.exp.default": (torch.exp, (_T,)),
    "aten.neg.default": (torch.neg, (_T,)),
    "aten.t.default": (torch.t, (_T,)),
    "aten.transpose.int": (torch.transpose, (_T, _I, _I)),
    "aten.unsqueeze.default": (torch.unsqueeze, (_T, _I)),
    "aten.where.self": (torch.where, (_T, _T, _T)),
    **{f"aten.{name}.default": (getattr(torch, name), (_T,)) for name in (
        "abs", "sqrt", "rsqrt", "log", "log1p", "expm1", "sin", "cos", "erf", "square", "reciprocal", "floor", "ceil",
        "trunc", "logical_not", "bitwise_not", "sum", "mean", "max", "min", "all", "any", "isnan", "clone",
        "detach",
    )},
    **{f"aten.{name}.default": (getattr(torch, name), (_T, _T)) for name in (
        "mv", "bmm", "dot", "maximum", "minimum", "logical_and", "logical_or",
    )},
    **{f"aten.{name}.Tensor": (getattr(torch, name), (_T, _T)) for name in (
        "le", "ge", "eq", "ne", "bitwise_and", "bitwise_or",
    )},
    **{f"aten.{name}.Scalar": (getattr(torch, name), (_T, _N)) for name in ("lt", "gt", "le", "ge", "eq", "ne")},
    "aten.addmm.default": (torch.addmm, (_T, _T, _T)),
    "aten.silu.default": (torch.nn.functional.silu, (_T,)),
    "aten.pow.Tensor_Scalar": (torch.pow, (_T, _N)),
    "aten.sum.dim_IntList": (torch.sum, (_T, _L)),
    "aten.mean.dim": (torch.mean, (_T, _L)),
    "aten.argmax.default": (torch.argmax, (_T, _I)),
    "aten.argmin.default": (torch.argmin, (_T, _I)),
    "aten.index_select.default": (torch.index_select, (_T, _I, _T)),
    "aten.view.default": (torch.Tensor.view, (_T, _L)),
    "aten.reshape.default": (torch.reshape, (_T, _L)),
    "aten.expand.default": (torch.Tensor.expand, (_T, _L)),
    "aten.permute.default": (torch.permute, (_T, _L)),
    "aten.squeeze.dim": (torch.squeeze, (_T, _I)),
}  # fmt: skip
_NUMBERS: dict[str, Callable[..., Any]] = {
    f"aten.{name}.Tensor": getattr(torch, name) for name in ("add", "sub", "mul", "div")
}
"""Those that take a number for their second tensor as well: then it is a tensor that has no say about the dtype."""


_TYPES = {_I: (ScalarType("int"),), _N: (ScalarType("int"), ScalarType("float"))}
_CLASSES: dict[str, tuple[type, ...]] = {_I: (int,), _N: (int, float)}


def binding(op: Operator) -> Callable[..., Any] | None:
    """The Python binding that calls this Operator's overload, if one is known for such operands."""
    row = _ROWS.get(op.name)
    if row is None or op.kwargs or len(op.args) != len(row[1]):
        return None
    if all(_fits(arg, kind) for arg, kind in zip(op.args, row[1])):
        return row[0]
    if op.name in _NUMBERS and _fits(op.args[0], _T) and _fits(op.args[1], _N):
        return _NUMBERS[op.name]
    return None


def _fits(arg: Any, kind: str) -> bool:
    if isinstance(arg, Variable):
        return isinstance(arg.type, TensorType) if kind == _T else arg.type in _TYPES.get(kind, ())
    if kind == _L:
        return isinstance(arg, (list, tuple)) and all(_fits(item, _I) for item in arg)
    return type(arg) in _CLASSES.get(kind, ())
