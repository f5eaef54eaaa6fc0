"""The index: which file differentiates which operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runtime.autodiff import array, cond, custom_grad, gradients, scan, segment, while_loop
from runtime.autodiff.tape import ArrayEntry, BranchEntry, CustomEntry, Grads, LoopEntry, Segment

if TYPE_CHECKING:
    from runtime.autodiff.backward import Backward
    from runtime.autodiff.forward import Rule

FORWARD: dict[str, Rule] = {
    "cond": cond.forward,
    "switch": cond.forward,
    "while_loop": while_loop.forward,
    "scan": scan.forward,
    "custom_grad": custom_grad.forward,
    "gradients": gradients.forward,
    "grad.leaf": gradients.leaf,
    "grad.needed": gradients.needed,
    "grad.history": gradients.history,
    "grad.named": gradients.named,
}
"""How each structural Operator's forward half is recorded. Everything else belongs to straight-line runs."""

FORWARD_FAMILIES: dict[str, Rule] = {"array": array.forward, "grad": gradients.repeat}
"""Operators by the first part of their name."""

BACKWARD: dict[type[Any], Callable[[Backward, Any, Grads], None]] = {
    Segment: segment.backward,
    BranchEntry: cond.backward,
    LoopEntry: while_loop.backward,
    scan.ScanEntry: scan.backward,
    CustomEntry: custom_grad.backward,
    ArrayEntry: array.backward,
}
"""How each entry of a tape is walked back."""
