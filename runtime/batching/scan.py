"""``scan``: a ``for`` over a range whose length is the same in all rows; else it is the ``while_loop`` that it stands
for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.batching.joining import MISSING
from runtime.batching.machine import Machine, Scope, refuse
from runtime.batching.rows import Rows
from runtime.ir import Operator, TensorType
from runtime.ops.scan import carried


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The last carried values, and what the items make."""
    length, *given = (machine.read(arg, scope) for arg in op.args)
    if isinstance(length, Rows):
        refuse(op, op.outputs[-1] if op.outputs else None, "a loop that collects items runs another number of times in "
               "some rows", "Write into a tensor with a row for each step, made before the loop.")
    count = carried(op)
    state, columns = given[:count], given[count:]
    (body,) = op.blocks
    items: list[list[Any]] = [[] for _ in op.outputs[count:]]
    inside, domain = dict(scope), machine.domain
    for index in reversed(range(length)) if op.attrs.get("reverse") else range(length):
        slices = [
            column[index] if isinstance(column, list)
            else domain.following([column.select(0, index)], domain.histories([column]))[0]
            for column in columns
        ]
        inside.update(zip(body.args, [index, *state, *slices]))
        given = machine.block(body, inside)
        state = given[:count]
        for collected, item in zip(items, given[count:]):
            collected.append(item)
    made = [domain.following([_made(op, rows, out.type)], domain.histories(rows))[0]
            for rows, out in zip(items, op.outputs[count:])]  # fmt: skip
    return [*state, *made]


def _made(op: Operator, items: list[Any], type_: Any) -> Any:
    if op.attrs.get("reverse"):
        items = items[::-1]
    if not isinstance(type_, TensorType):
        return items
    return torch.stack(items) if items else MISSING
