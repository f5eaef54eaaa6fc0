"""The function that runs as plain Python just now, in this thread: it says how the calls in it are made.

    f(x)   ->   call(f, x)          outside a trace: f(x), or a Program of its own (see ``dy2static.pieces``)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Caller = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class _Local(threading.local):
    call: Caller | None = None
    depth = 0
    """How many such functions call each other."""


local = _Local()


def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], caller: Caller | None) -> Any:
    """``function(*args, **kwargs)``, with the calls in it made by ``caller``."""
    before, local.call = local.call, caller
    local.depth += 1
    try:
        return function(*args, **kwargs)
    finally:
        local.call = before
        local.depth -= 1


__all__ = ["Caller", "local", "run"]
