"""``custom_grad``: a ``torch.autograd.Function`` whose two halves run Blocks for many rows; torch batches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch

from runtime.batching.machine import Machine, Plan, Scope, refuse
from runtime.batching.rows import Domain, Rows
from runtime.ir import Block, Operator, Variable
from runtime.torch_internals import batches


@dataclass(eq=False)
class _Record:
    """What the two halves of one call know beside tensors."""

    plan: Plan
    op: Operator
    read: list[Variable]
    """Tensors from outside that the Blocks read, given after the Operator's arguments."""
    others: Scope
    """What they read besides."""
    residuals: list[Any] = field(default_factory=list)
    """What forward leaves for backward, each in a tuple; None for tensors, which autograd keeps."""

    def run(self, block: Block, given: Sequence[Any], read: Sequence[Any]) -> list[Any]:
        """Run a Block on its arguments and the tensors that it reads."""
        scope = {**self.others, **dict(zip(block.args, given)), **dict(zip(self.read, read))}
        return Machine(self.plan, Domain.of([*given, *read])).block(block, scope)


class _Function(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(record: _Record, *given: Any) -> Any:
        """The results, then the tensors that backward needs."""
        op = record.op
        count, own = len(op.outputs), len(op.args)
        values = record.run(op.blocks[0], given[:own], given[own:])
        residuals = values[count:]
        if any(isinstance(value, (Rows, list)) for value in residuals):
            _refuse(op)
        record.residuals = [None if isinstance(value, torch.Tensor) else (value,) for value in residuals]
        kept = [value for value in residuals if isinstance(value, torch.Tensor)]
        return tuple(map(_apart, [*values[:count], *kept]))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward reads."""
        record, *given = inputs
        count = len(record.op.outputs)
        ctx.record = record
        ctx.save_for_backward(*output[count:], *given[len(record.op.args) :])
        hidden = [output[index] for index in record.op.attrs.get("not_differentiable", ())]
        ctx.mark_non_differentiable(*output[count:], *hidden)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradients of the Operator's arguments; what it only reads has none."""
        record = ctx.record
        op = record.op
        saved = list(ctx.saved_tensors)
        residuals = [saved.pop(0) if other is None else other[0] for other in record.residuals]
        results = record.run(op.blocks[1], [*residuals, *gradients[: len(op.outputs)]], saved)
        return (None, *results, *[None] * len(record.read))


def _apart(value: Any) -> Any:
    """A tensor of its own: a result that is an argument, or another result, would be taken for one that was written."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The forward Block's results; where a gradient is asked for, with that which the backward Block computes."""
    forward, *backwards = op.blocks
    args = [machine.read(arg, scope) for arg in op.args]
    if not torch.is_grad_enabled() or not any(
            isinstance(arg, torch.Tensor) and batches.needs_gradient(arg) for arg in args):  # fmt: skip
        return machine.block(forward, {**scope, **dict(zip(forward.args, args))})[: len(op.outputs)]
    captured = dict.fromkeys(var for block in op.blocks for var in machine.plan.captured[id(block)])
    values = [*args, *(scope[var] for var in captured)]
    if "given" in op.attrs or len(backwards) > 1 or any(isinstance(value, (Rows, list)) for value in values):
        _refuse(op)
    read = [var for var in captured if isinstance(scope[var], torch.Tensor)]
    others = {var: scope[var] for var in captured if var not in read}
    record = _Record(machine.plan, op, read, others)
    histories = machine.domain.histories(args)
    given: Any = _Function.apply(record, *args, *(scope[var].detach() for var in read))
    return machine.domain.following(given[: len(op.outputs)], histories)


def _refuse(op: Operator) -> NoReturn:
    refuse(op, None, "a torch.autograd.Function, where a gradient is asked for, has numbers or lists that differ "
           "between rows, or gradients that may be None",
           "Write its forward as plain operators, or call it outside of vmap.", "D2S285")


__all__ = ["run"]
