"""Comparisons of a single number that only a test reads: compared in Python, without an operator.

    %c : bool[] = aten.gt.Scalar(%n, 0)     ->     v2 = v1.item() > 0
    %b : bool = scalar.truth(%c)                   v3 = bool(v2)

A tensor of no dimensions gives its number to Python exactly, and Python compares numbers as the operator does once both
have the dtype in which it compares. So a number of the Program's text is rounded to that dtype first: 0.1 is not the
0.1 of float32. Integers are compared with integers alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from runtime.ir import Block, Operand, Operator, Program, TensorType, Variable, leaves
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of, handed_in

SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_FLOATS = (torch.float64, torch.float32)
_LARGEST = 1e30
"""Numbers up to here are numbers of every dtype in ``_FLOATS``."""


def tested(program: Program) -> frozenset[Variable]:
    """The results of comparisons that nothing but tests reads, be it behind branches (``a > 0 and b > 0``)."""
    compared = {op.outputs[0] for op in program.block.walk() if _operands(op) is not None}
    if not compared:
        return frozenset()
    found = compared | {out for op in program.block.walk() if flow_of(op).kind is Kind.BRANCH for out in op.outputs}
    before = -1
    while before != len(found):
        before = len(found)
        _leave_read(program.block, found, {})
    return frozenset(found & compared)


def _leave_read(block: Block, found: set[Variable], targets: Mapping[int, Variable]) -> None:
    """Take out what is read otherwise. ``targets``: what yields of the Block become, where it is a branch's."""
    for op in block.ops:
        if op.name != "scalar.truth":
            found.difference_update(handed_in(op) if flow_of(op).kind is Kind.BRANCH else op.inputs)
        for number, inner in enumerate(op.blocks):
            _leave_read(inner, found, _targets(op, number))
    for position, value in enumerate(block.yields):
        if targets.get(position) not in found:
            found.difference_update(leaves(value))


def _targets(op: Operator, number: int) -> dict[int, Variable]:
    """The outputs that are what a branch's Block yields, by the position there."""
    if flow_of(op).kind is not Kind.BRANCH:
        return {}
    found = {}
    for port in flow_of(op).ports(op):
        place = port.yields[number] if port.whole and port.yields else None
        if place is not None and port.output is not None:
            found[place] = op.outputs[port.output]
    return found


def operands(op: Operator) -> tuple[Variable, str, Operand]:
    """For a comparison of ``tested``: what is compared, Python's sign, and with what, rounded."""
    found = _operands(op)
    assert found is not None
    return found


def _operands(op: Operator) -> tuple[Variable, str, Operand] | None:
    family, _, rest = op.name.partition(".")
    packet, _, overload = rest.partition(".")
    if family != "aten" or packet not in SIGNS or overload not in ("Tensor", "Scalar") or len(op.args) != 2:
        return None
    left, right = op.args
    if op.kwargs or not isinstance(left, Variable) or not isinstance(left.type, TensorType) or left.type.shape != ():
        return None
    if isinstance(right, Variable):
        known = left.type.dtype in (*_FLOATS, torch.int64, torch.int32) and left.type.device is None
        return (left, SIGNS[packet], right) if right.type == left.type and known else None
    number = _rounded(right, left.type.dtype)
    return None if number is None else (left, SIGNS[packet], number)


def _rounded(number: Any, dtype: torch.dtype | None) -> int | float | None:
    """The number as the operator compares it; None where that is not known."""
    if type(number) is int and dtype == torch.int64:
        return number if -(2**63) <= number < 2**63 else None
    if type(number) in (int, float) and dtype in _FLOATS and math.isfinite(number) and abs(number) <= _LARGEST:
        return float(torch.tensor(number, dtype=dtype).item()) if type(number) is float or abs(number) < 2**53 else None
    return None


__all__ = ["SIGNS", "operands", "tested"]
