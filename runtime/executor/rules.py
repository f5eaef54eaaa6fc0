"""The index: which file writes which operator."""

from __future__ import annotations

from runtime.executor import (
    array,
    assertion,
    aten,
    checkpoint,
    cond,
    custom_grad,
    grad,
    gradients,
    host,
    printing,
    py_func,
    recursion,
    reporting,
    scalar,
    scan,
    switch,
    update,
    while_loop,
)
from runtime.executor.emitter import FAMILIES, RULES

# Structural operators, by name.
RULES |= {
    "cond": cond.emit,
    "switch": switch.emit,
    "while_loop": while_loop.emit,
    "scan": scan.emit,
    "update": update.emit,
    "custom_grad": custom_grad.emit,
    "recursion": recursion.emit,
    "recur": recursion.emit_again,
    "gradients": gradients.emit,
    "py_func": py_func.emit,
    "unchanged": py_func.emit_test,
    "print": printing.emit,
    "warn": reporting.emit_warn,
    "log": reporting.emit_log,
    "assert": assertion.emit_assert,
    "raise": assertion.emit_raise,
}

# By the first part of the name; everything else is an overload in ``torch.ops``.
FAMILIES |= {
    "scalar": scalar.emit, "array": array.emit, "grad": grad.emit, "checkpoint": checkpoint.emit, "host": host.emit,
    "frame": recursion.emit_frame,
    "": aten.emit,
}  # fmt: skip
