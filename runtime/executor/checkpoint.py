"""Checkpoint operators: a call of the function that defines the operator."""

from __future__ import annotations

from runtime.executor.emitter import Emitter
from runtime.ir import Operator
from runtime.ops.checkpoint import FUNCTIONS


def emit(emitter: Emitter, op: Operator) -> None:
    """``steps, levels, place = f(steps, levels, step, 3)``."""
    args = ", ".join(emitter.operand(arg) for arg in op.args)
    emitter.assign(op.outputs, f"{emitter.bind(FUNCTIONS[op.name], 'f')}({args})", unpack=len(op.outputs) > 1)
