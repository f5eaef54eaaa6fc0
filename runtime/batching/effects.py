"""What others see besides results: exceptions, text, calls of Python. A call for many rows is one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.batching.machine import Machine, Scope, refuse
from runtime.batching.rows import Mask, Rows
from runtime.ir import Operator
from runtime.torch_internals import batches


def run_assert(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """Nothing, if it holds for all rows; else what the first row for which it does not hold would raise."""
    flag = machine.flag(op.args[0], scope)
    if isinstance(flag, Mask):
        _as_row(machine, op, scope, machine.others(flag).first)
    elif not flag:
        run_raise(machine, op, scope)
    return ()


def run_raise(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """What the first row would raise that comes here."""
    _as_row(machine, op, scope, machine.mask.first if machine.mask is not None else 0)
    return ()


def _as_row(machine: Machine, op: Operator, scope: Scope, row: int) -> None:
    machine.plan.alone(op).run([_in_row(machine, scope[var], row) for var in dict.fromkeys(op.inputs)], [])


def _in_row(machine: Machine, value: Any, row: int) -> Any:
    if isinstance(value, Rows):
        return value.values[row]
    if isinstance(value, torch.Tensor):
        return machine.domain.row(value, row)
    return [_in_row(machine, item, row) for item in value] if isinstance(value, list) else value


def run_said(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """``print``, ``log`` and calls of Python: done once, where all rows say the same."""
    if machine.mask is not None or _differs([scope[var] for var in op.inputs]):
        named = {"py_func": "a Python function is called with what", "print": "what is printed"}
        what = "what NumPy is given" if op.name.startswith("host.") else named.get(op.name)
        refuse(op, None, f"{what or 'what is logged'} depends on the row",
               "Give the value as a result, and use it after the call.", "D2S284")
    return machine.plan.alone(op).run([scope[var] for var in dict.fromkeys(op.inputs)], [])


def run_test(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """A test of what Python holds: it is about no row."""
    with machine.only(None):
        return run_said(machine, op, scope)


def run_warn(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """A warning, once, if its text is the same in all rows that give it."""
    with machine.only(None):
        return run_said(machine, op, scope)


def _differs(values: Sequence[Any]) -> bool:
    return any(
        _differs(value) if isinstance(value, list) else isinstance(value, Rows) or bool(batches.levels_of(value))
        for value in values
    )
