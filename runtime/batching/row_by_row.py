"""Operators for which torch has no batching rule: called once for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.batching.machine import Machine, refuse
from runtime.ir import Operator
from runtime.ir.walk import map_leaves
from runtime.torch_internals import batches


def run(machine: Machine, op: Operator, call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What the operator gives, its rows put together.

    Raises:
        TraceError: A transform for gradients stands between the rows and the operator.
    """
    name, out = op.name.split(".")[1], op.outputs[0] if op.outputs else None
    domain = machine.domain
    wrapped: list[bool] = []
    map_leaves([list(args), kwargs], lambda value: wrapped.append(batches.is_transformed(value)))
    if any(wrapped):
        refuse(op, out, f"PyTorch has no rule for {name} on many rows at once", "Call it outside of vmap.", "D2S285")
    with batches.without_transforms():
        found = []
        for row in range(domain.count):
            mine = map_leaves([list(args), kwargs], lambda value: domain.row_with_history(value, row))  # noqa: B023
            found.append(call(*mine[0], **mine[1]))
    return _together(machine, op, found)


def _together(machine: Machine, op: Operator, found: Sequence[Any]) -> Any:
    first = found[0]
    if isinstance(first, (list, tuple)):
        return [_together(machine, op, column) for column in zip(*found)]
    if not isinstance(first, torch.Tensor):
        return machine.value(list(found))
    if len({one.shape for one in found}) > 1:
        refuse(op, op.outputs[0], f"{op.name.split('.')[1]} gives another number of elements in some rows",
               "Keep one size and say with a mask what counts.")
    with batches.without_transforms():
        stacked = torch.stack(list(found)).reshape(*machine.domain.sizes, *first.shape)
    return batches.batched(stacked, machine.domain.levels)


__all__ = ["run"]
