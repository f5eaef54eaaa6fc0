"""``while_loop``: goes on while any row does. Rows that have ended keep what they ended with.

Between two iterations in which no row ends, nothing is chosen or filled in: rows that have ended run along, as copies
of a row that goes on, and what becomes of them is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.batching.joining import filled_in
from runtime.batching.machine import Machine, Scope
from runtime.batching.rows import Mask
from runtime.ir import Operator


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The values that each row ended with."""
    test, body = op.blocks
    state: Sequence[Any] = [machine.read(value, scope) for value in op.args]
    ended_with: Sequence[Any] | None = None
    inside, outer, count = dict(scope), machine.mask, 0
    limit = op.attrs.get("max_iterations")
    try:
        while True:
            inside.update(zip(test.args, state))
            machine.operators(test, inside)
            flag = machine.flag(test.yields[0], inside)
            if flag is False:
                return state if ended_with is None else machine.joined(op, _running(machine), state, ended_with)
            if isinstance(flag, Mask):
                ended = machine.others(flag)
                ended_with = _kept(state) if ended_with is None else machine.joined(op, ended, state, ended_with)
                state = [filled_in(flag, value) for value in state]
                inside = machine.filled_in(flag, op.blocks, scope)
                machine.mask = flag
            if count == limit:
                already = op.attrs.get("already", 0)
                raise RuntimeError(f"this loop goes on after max_iterations={limit + already} iterations")
            count += 1
            inside.update(zip(body.args, state))
            state = machine.block(body, inside)
    finally:
        machine.mask = outer


def _running(machine: Machine) -> Mask:
    assert machine.mask is not None, "rows have ended before"
    return machine.mask


def _kept(state: Sequence[Any]) -> list[Any]:
    """The values, of which later iterations may empty or fill the lists."""
    return [list(value) if isinstance(value, list) else value for value in state]
