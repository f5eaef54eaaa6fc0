"""Values while a Program is written as a graph of PyTorch's: what stands for a Variable, and numbers as tensors.

    f32[3, s0]     the tensor that PyTorch's exporter traces
    int            a Python int; an expression over sizes; else a tensor without dimensions, of int64
    list<f32[3]>   a Python list, whose length has to be known
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.ir import ArrayType, Operator, ScalarType, Type

NUMBERS: dict[str, torch.dtype] = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}
"""The dtype in which a kind of Python number is a tensor."""

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
"""Numbers that are expressions over sizes."""

Number = Any
"""A bool, int or float, an expression over sizes, or a tensor without dimensions."""


class Refused(Exception):
    """Something without a form, and why; ``op``: the Operator, once it is known."""

    def __init__(self, reason: str, op: Operator | None = None) -> None:
        super().__init__(reason)
        self.reason, self.op = reason, op


def is_constant(value: Number) -> bool:
    """Whether a number is known now."""
    return type(value) in (bool, int, float)


def number(value: Number, kind: str) -> torch.Tensor:
    """A number as a tensor without dimensions, of the dtype of a kind.

    >>> number(3, "float")
    tensor(3., dtype=torch.float64)
    """
    dtype = NUMBERS[kind]
    if isinstance(value, torch.Tensor):
        return value if value.dtype == dtype else torch.ops.aten.to.dtype(value, dtype)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Refused("an int beyond 64 bits")
    if isinstance(value, SYMBOLS):
        made = torch.ops.aten.scalar_tensor.default(value, dtype=NUMBERS[_kind_of_symbol(value)])
        return number(made, kind)
    return torch.ops.aten.full.default([], value, dtype=dtype)


def _kind_of_symbol(value: Any) -> str:
    return "int" if isinstance(value, torch.SymInt) else "float" if isinstance(value, torch.SymFloat) else "bool"


def kind_of(type_: Type) -> str | None:
    """The kind of number that a type says; None for all else."""
    found = type_.kind if isinstance(type_, ScalarType) else None
    return found if found in NUMBERS else None


def reason_of(type_: Type) -> str | None:
    """Why values of a type have no form; None if they have one."""
    if isinstance(type_, ScalarType):
        return None if type_.kind in NUMBERS else {"str": "text as a value of the run"}.get(
            type_.kind, f"{type_.kind} numbers")  # fmt: skip
    if isinstance(type_, ArrayType):
        return reason_of(type_.element)
    dtype = getattr(type_, "dtype", None)
    return "a value of a kind that only the run knows, such as None on one path" if dtype is None else None


__all__ = ["NUMBERS", "SYMBOLS", "Number", "Refused", "is_constant", "kind_of", "number", "reason_of"]
