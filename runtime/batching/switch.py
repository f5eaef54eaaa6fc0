"""``switch``: each Block that some row asks for runs once, for these rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.batching.machine import Machine, Scope
from runtime.batching.rows import Mask
from runtime.executor.switch import position
from runtime.ir import Operator


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The results of the Block that each row's number says."""

    def chosen(mask: Mask | None, values: list[Any]) -> Sequence[Any]:
        block = op.blocks[position(values[0], len(op.blocks))]
        return machine.block(block, scope) if mask is None else machine.under(mask, block, scope)

    return machine.by_value(op, [machine.read(op.args[0], scope)], chosen)
