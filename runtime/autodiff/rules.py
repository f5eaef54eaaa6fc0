"""The index: which file differentiates which operator."""

from __future__ import annotations

from runtime.autodiff import (
    array,
    backward,
    cond,
    custom_grad,
    forward,
    gradients,
    recursion,
    scan,
    segment,
    while_loop,
)
from runtime.autodiff.tape import ArrayEntry, BranchEntry, CustomEntry, LoopEntry, Segment

# How each structural Operator's forward half is recorded. Everything else belongs to straight-line runs.
forward.RULES |= {
    "cond": cond.forward,
    "switch": cond.forward,
    "while_loop": while_loop.forward,
    "scan": scan.forward,
    "custom_grad": custom_grad.forward,
    "unchanged": custom_grad.unchanged,
    "recursion": recursion.forward,
    "recur": recursion.again,
    "gradients": gradients.forward,
    "grad.leaf": gradients.leaf,
    "grad.needed": gradients.needed,
    "grad.history": gradients.history,
    "grad.named": gradients.named,
}
# Operators by the first part of their name.
forward.FAMILIES |= {"array": array.forward, "grad": gradients.repeat, "checkpoint": gradients.repeat}

# How each entry of a tape is walked back.
backward.RULES |= {
    Segment: segment.backward,
    BranchEntry: cond.backward,
    LoopEntry: while_loop.backward,
    scan.ScanEntry: scan.backward,
    CustomEntry: custom_grad.backward,
    recursion.RecursionEntry: recursion.backward,
    recursion.CallEntry: recursion.backward_again,
    ArrayEntry: array.backward,
}
