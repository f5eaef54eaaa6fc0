"""``while``: a Python loop up to the moment its condition is staged, a staged loop from there.

    while x < 3:       ->   while_stmt(lambda: x < 3, body, "x")
        x = f(x)
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.cells import Cells
from dy2static.operators.shared.loop_limits import count, region, require_rollable, rest
from dy2static.operators.shared.staging import Session, Staged, active
from dy2static.options_of_loops import options_of
from runtime.errors import Dy2StaticError
from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.control.cond import cond
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
    cells = Cells(names, body, test)
    here = session.location()

    def run(start: int, peeled: bool) -> None:
        for done in itertools.count(start):
            flag = condition()
            if is_a(flag, Staged):
                require_rollable(trace, options)
                if peeled:
                    cond(trace, flag, functools.partial(first, done), lambda: None, cells)
                else:
                    with _else_peeled(trace, here):
                        while_loop(trace, flag, condition, body, cells, rest(options, done), _may_peel(trace, here))
                return
            if not flag:
                return
            count(options, done)
            body()

    def first(done: int) -> None:
        count(options, done)
        body()
        run(done + 1, False)

    with region(session, options):
        run(0, here in session.call.known.peeled)


@contextlib.contextmanager
def _else_peeled(session: Session, here: Location | None) -> Iterator[None]:
    """Where a loop that takes gradients is none that can be staged, trace again with its first iteration apart.

    What an optimizer remembers it makes in its first step: from there on each iteration leaves what it began with.
    """
    asked = session.graph.gradients_asked
    try:
        yield
    except Dy2StaticError as error:
        if session.graph.gradients_asked == asked or here is None or not _may_peel(session, here):
            raise
        raise session.restart(Findings(peeled=frozenset((here,)))) from error


def _may_peel(session: Session, here: Location | None) -> bool:
    return here is not None and here not in session.call.known.peeled and not session.call.advanced
