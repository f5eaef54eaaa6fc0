"""``update``: writes, on copies of the bases. Rows have a memory each, so a base that all rows share is copied for each
where rows write different things.

Autograd is not told of a write: it would refuse to go back through all rows that read the value before, although some
have not written it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.batching.joining import filled_in
from runtime.batching.machine import Machine, Scope, refuse
from runtime.batching.rows import Mask, Rows
from runtime.executor.update import refuse as refuse_write
from runtime.ir import Block, Operator
from runtime.ir.definition import definition_of
from runtime.ops.update import is_unnoticed
from runtime.torch_internals import batches


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The bases after the writes, and what else the Block gives."""
    (block,) = op.blocks
    bases = [scope[base] for base in op.args]
    read = machine.plan.captured[id(block)]
    numbers = [var for var in read if isinstance(scope[var], Rows)]

    def written(mask: Mask | None, values: list[Any]) -> Sequence[Any]:
        inside = dict(scope) if mask is None else machine.filled_in(mask, [block], scope)
        inside.update(zip(numbers, values))
        own = bases if mask is None else [filled_in(mask, base) for base in bases]
        return _written(machine, op, block, own, inside)

    return machine.by_value(op, [scope[var] for var in numbers], written) if numbers else written(None, [])


def _written(machine: Machine, op: Operator, block: Block, bases: Sequence[Any], scope: Scope) -> Sequence[Any]:
    values = [scope[var] for var in machine.plan.captured[id(block)]]
    tensors = [value for value in _flat([*values, *bases]) if isinstance(value, torch.Tensor)]
    if "refused" in op.attrs and torch.is_grad_enabled() and any(map(batches.needs_gradient, tensors)):
        refuse_write(op.attrs["refused"], torch.empty(0, requires_grad=True))
    levels = sorted(set[int]().union(*map(batches.levels_of, tensors)))
    if any(definition_of(inner.name).random for inner in block.ops):
        levels = list(machine.domain.levels)
    if is_unnoticed(op):
        if any(map(batches.needs_gradient, tensors)):
            refuse(op, op.outputs[0], "a tensor with gradients is written through .data",
                   "Write the tensor itself, or a copy of it.", "D2S285")
        bases = [base.detach() for base in bases]
    domain = machine.domain
    copies = [domain.following([_copy(machine, base, levels)], domain.histories([base]))[0] for base in bases]
    scope.update(zip(block.args, copies))
    recorded = any(inner.grad_mode != "off" for inner in block.ops)
    histories = domain.histories([*bases, *(values if recorded else ())])
    return domain.following(machine.block(block, scope), histories)  # a write to a view is one to its base


def _copy(machine: Machine, base: torch.Tensor, levels: Sequence[int]) -> torch.Tensor:
    """A copy with memory of its own, in each row of all these levels."""
    with machine.domain.keeping_history():
        if batches.levels_of(base).issuperset(levels):
            return base.clone()
        sizes = [size for level, size in zip(machine.domain.levels, machine.domain.sizes) if level in levels]
        with batches.without_transforms():
            plain = torch.ones(sizes, dtype=torch.bool, device=base.device)
        return torch.where(batches.batched(plain, levels), base, base)


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += _flat(value) if isinstance(value, list) else [value]
    return found
