"""``a if c else b``: evaluates one side, or stages both.

    y = a if c else b   ->   y = if_expr(c, lambda: a, lambda: b)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.cells import Cells
from dy2static.operators.shared.staging import NO_NAMES, Staged, active
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.numbers import known_sizes


def if_expr(cond: Any, body: Callable[[], Any], orelse: Callable[[], Any], names: str = "") -> Any:
    """The value of ``body()`` if ``cond`` is true, else of ``orelse()``.

    ``names``: the local variables that the branches hand over as well, with spaces between them.

    >>> if_expr(0, lambda: 1 / 0, lambda: "else")
    'else'
    """
    session = active()
    if session is not None:
        cond = known_sizes.decide(session, truth_of(session, cond))
        if is_a(cond, Staged):
            kept = Cells(names, body, orelse) if names else NO_NAMES
            return tracer_cond.cond(session, cond, body, orelse, kept)
    return body() if cond else orelse()
