"""The index: which file runs which operator for many rows."""

from __future__ import annotations

from runtime.batching import (
    array,
    aten,
    cond,
    custom_grad,
    effects,
    gradients,
    recursion,
    scalar,
    scan,
    switch,
    update,
    while_loop,
)
from runtime.batching.machine import FAMILIES, RULES

# Structural operators, by name.
RULES |= {
    "cond": cond.run,
    "switch": switch.run,
    "while_loop": while_loop.run,
    "scan": scan.run,
    "update": update.run,
    "custom_grad": custom_grad.run,
    "recursion": recursion.run,
    "gradients": gradients.run_unlowered,
    "grad.needed": gradients.run_needed,
    "py_func": effects.run_said,
    "unchanged": effects.run_test,
    "print": effects.run_said,
    "warn": effects.run_warn,
    "log": effects.run_said,
    "assert": effects.run_assert,
    "raise": effects.run_raise,
}

# By the first part of the name; everything else is an overload in ``torch.ops``.
FAMILIES |= {"scalar": scalar.run, "array": array.run, "grad": gradients.run, "host": effects.run_said,
             "": aten.run}
