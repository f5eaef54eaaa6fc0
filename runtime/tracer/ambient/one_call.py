"""What a call at hand has done to the world while its Program was traced, so that another trace for it does it no more.

A trace may be given up, and begin again: it knows more then, or leaves less open. What it made others do, it made them
do: a cache has counted that it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Done = list[tuple[Any, Any]]
"""One after another: what was done, and what it gave."""
_calls: list[Done] = []


@contextmanager
def one_call() -> Iterator[None]:
    """All traces in here are for one call. Callers hold the lock for traces."""
    _calls.append([])
    try:
        yield
    finally:
        _calls.pop()


def once(number: int, what: Any, act: Callable[[], Any]) -> Any:
    """``act()``, or what it gave in an earlier trace for this call: ``what``, as the ``number``-th thing done."""
    if not _calls:
        return act()
    done = _calls[-1]
    if number < len(done) and done[number][0] == what:
        return done[number][1]
    del done[number:]
    value = act()
    done.append((what, value))
    return value


__all__ = ["once", "one_call"]
