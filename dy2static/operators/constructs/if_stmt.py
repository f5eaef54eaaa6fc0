"""``if``: runs one branch, or stages both when the condition is a tensor or a staged number.

    if x > 0:          ->   if_stmt(x > 0, body, orelse, "y")
        y = 1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.cells import Cells
from dy2static.operators.shared.staging import Staged, active
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.numbers import known_sizes


def if_stmt(
    cond: Any,
    body: Callable[[], Any],
    orelse: Callable[[], Any] | None = None,
    names: str = "",
) -> None:
    """Run ``body`` if ``cond`` is true, else ``orelse``; both are staged if it is staged.

    ``names``: the local variables that the branches hand over, with spaces between them.
    """
    session = active()
    if session is not None:
        cond = known_sizes.decide(session, truth_of(session, cond))
        if is_a(cond, Staged):
            kept = Cells(names, body, orelse)
            tracer_cond.cond(session, cond, _only_run(body), _only_run(orelse), kept)
            return
    if cond:
        body()
    elif orelse is not None:
        orelse()


def _only_run(block: Callable[[], Any] | None) -> Callable[[], None]:
    """The block as a path that gives nothing: one that is an expression has a value."""

    def run() -> None:
        if block is not None:
            block()

    return run
