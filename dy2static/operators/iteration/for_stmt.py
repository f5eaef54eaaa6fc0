"""``for``: a Python loop, or a staged one where the number of items is only known when the Program runs.

    for i in range(n):   ->   def body(i): nonlocal y; y = y + i
        y = y + i             for_stmt(range(n), body, "y")
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dy2static.operators.iteration.generator import is_unheld
from dy2static.operators.iteration.traced_for import traced_for
from dy2static.operators.shared.cells import Cells
from dy2static.operators.shared.staging import active
from dy2static.options_of_loops import options_of


def for_stmt(
    iterable: Any,
    body: Callable[[Any], Any],
    names: str = "",
    test: Callable[[], Any] | None = None,
    options: dict[str, Any] | None = None,
) -> None:
    """Run ``body(item)`` for each item, while ``test()`` (checked before an item is taken) is true.

    ``names``: the local variables that the loop hands over, with spaces between them.
    """
    session = active()
    if session is not None:
        options = options or options_of(session, sys._getframe(1))
        state = Cells(names, body, test)
        traced_for(session, iterable, test, body, state, options, is_unheld(session, iterable))
        return
    if test is None:
        for value in iterable:
            body(value)
        return
    iterator = iter(iterable)
    while test():
        try:
            value = next(iterator)
        except StopIteration:
            return
        body(value)
