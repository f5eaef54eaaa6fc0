"""``while``: a Python loop up to the moment its condition is staged, a staged loop from there.

    while x < 3:       ->   while_stmt(lambda: x < 3, body, "x")
        x = f(x)
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.cells import Cells
from dy2static.operators.shared.loop_limits import count, region, require_rollable, rest
from dy2static.operators.shared.staging import Staged, active
from dy2static.options_of_loops import options_of
from runtime.tracer.control.while_loop import while_loop


def while_stmt(
    test: Callable[[], Any],
    body: Callable[[], Any],
    names: str = "",
    options: dict[str, Any] | None = None,
) -> None:
    """Run ``body`` while ``test()`` is true. Iterations before the condition becomes staged stay unrolled.

    ``names``: the local variables that the loop hands over, with spaces between them.
    """
    session = active()
    if session is None:
        while test():
            body()
        return
    trace = session

    def condition() -> Any:
        return truth_of(trace, test())

    options = options or options_of(session, sys._getframe(1))
    with region(session, options):
        for done in itertools.count():
            flag = condition()
            if isinstance(flag, Staged):
                require_rollable(session, options)
                while_loop(session, flag, condition, body, Cells(names, body, test), rest(options, done))
                return
            if not flag:
                return
            count(options, done)
            body()
