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
}


def binding(op: Operator) -> Callable[..., Any] | None:
    """The Python binding that calls this Operator's overload, if one is known for such operands."""
    row = _ROWS.get(op.name)
    if row is None or op.kwargs or len(op.args) != len(row[1]):
        return None
    if all(_fits(arg, kind) for arg, kind in zip(op.args, row[1])):
        return row[0]
    return None


def _fits(arg: Any, kind: str) -> bool:
    if isinstance(arg, Variable):
        return isinstance(arg.type, TensorType) if kind == _T else arg.type == ScalarType("int")
    return kind == _I and type(arg) is int
