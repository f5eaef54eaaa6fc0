"""``for``: a Python loop, or a staged one where the number of items is only known when the Program runs.

    for i in range(n):   ->   def body(item): nonlocal i, y; i = item; y = y + i
        y = y + i             for_stmt(range(n), None, body, get_state, set_state, ("i", "y"))
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dy2static.loop_options import options_of
from dy2static.operators.staging import LocalNames, active


def for_stmt(
    iterable: Any,
    test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get_state: Callable[[], tuple[Any, ...]],
    set_state: Callable[[tuple[Any, ...]], None],
    names: tuple[str, ...],
    options: dict[str, Any] | None = None,
) -> None:
    """Run ``body(item)`` for each item, while ``test()`` (checked before an item is taken) is true."""
    session = active()
    if session is not None:
        from dy2static.operators.generator import is_unheld
        from dy2static.operators.traced_for import traced_for

        options = options or options_of(session, sys._getframe(1))
        state = LocalNames(names, get_state, set_state)
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
