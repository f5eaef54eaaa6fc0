"""``cond``: where rows disagree both Blocks run, each for its own rows; where all agree, one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.batching.machine import Machine, Scope
from runtime.batching.rows import Mask
from runtime.ir import Operator


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The first Block's results in the rows whose flag is true, the second's in the others."""
    flag = machine.flag(op.args[0], scope)
    first, second = op.blocks
    if not isinstance(flag, Mask):
        return machine.block(first if flag else second, scope)
    a = machine.under(flag, first, scope)
    return machine.joined(op, flag, a, machine.under(machine.others(flag), second, scope))
