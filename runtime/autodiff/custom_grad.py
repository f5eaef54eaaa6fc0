"""``custom_grad``: both Blocks in line, neither of them differentiated."""

from __future__ import annotations

from typing import Any

import torch

from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, NotDifferentiable, can_carry, join_activity
from runtime.autodiff.tape import CustomEntry, Grad, Grads, Tape
from runtime.ir import Operator, Variable


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """The forward Block, without autograd. Errors raised: NotDifferentiable if it closes over an active tensor."""
    inner = op.blocks[0]
    values = [forward.plain(arg) if isinstance(arg, Variable) else arg for arg in op.args]
    for arg, value in zip(inner.args, values):
        forward.env[arg] = value
        forward.activity[arg] = False
    for var in inner.captures():
        if forward.is_active(var):
            raise NotDifferentiable("custom_grad that closes over a tensor that needs a gradient")
    with torch.no_grad():
        forward.block(inner)
    results = [forward.plain(o) if isinstance(o, Variable) else o for o in inner.yields]
    count = op.attrs["n_outputs"]
    reached = join_activity(forward.activity_of(arg) for arg in op.args)
    for out, value in zip(op.outputs, results[:count]):
        forward.env[out] = forward.recorder.alias(value) if isinstance(value, torch.Tensor) else value
        if reached and can_carry(value) and op.grad_mode != "off":
            forward.activity[out] = reached
    tape.entries.append(CustomEntry(op, results[count:], results[:count]))


def backward(backward: Backward, entry: CustomEntry, grads: Grads) -> None:
    """The user's own backward, in line."""
    forward, op = backward.forward, entry.op
    count = op.attrs["n_outputs"]
    given = [grads.pop(out, None) for out in op.outputs]
    if all(grad is None for grad in given):
        return
    if any(grad is not None and grad.maybe for grad in given):
        given = [None if grad is None else Grad(backward.definite(grad)) for grad in given]
    block = op.blocks[1]
    values: list[Any] = [*entry.residuals]
    for result, grad in zip(entry.results[:count], given):
        if grad is not None:
            values.append(grad.tensor)
        elif op.attrs.get("materialize_grads", True) and can_carry(result):
            values.append(backward.zeros(result))
        else:
            values.append(None)
    for arg, value in zip(block.args, values):
        forward.env[arg] = value
        forward.activity[arg] = False
    with torch.no_grad():
        forward.block(block)
    for arg, operand in zip(op.args, block.yields):
        if isinstance(arg, Variable) and forward.is_active(arg) and isinstance(operand, Variable):
            tensor = forward.plain(operand)
            if isinstance(tensor, torch.Tensor):
                backward.add(grads, arg, Grad(tensor))
