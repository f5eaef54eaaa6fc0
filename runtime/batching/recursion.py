"""``recursion`` for many rows: each may call itself another number of times, so it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.batching.machine import Machine, Scope, refuse
from runtime.ir import Operator


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """Errors raised: TraceError (D2S283)."""
    refuse(op, None, "a function that calls itself would call itself as often as each row decides",
           "Write it as a loop, or call it for one row after the other.")
