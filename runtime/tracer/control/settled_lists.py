"""Lists that paths put other lists, dicts and objects into: after too many paths, they hold those by reference.

    rows = []
    for v in x.tolist():       # unrolled
        if v > 0:
            rows.append([v])   # or {"n": v}: after each branch ``rows`` is one of twice as many lists as before

A list is one of several after such a branch: which of the lists made so far each item is has to be known, as they may
be changed. Where that would be too many (``choices.too_many``), the trace begins again and lets lists that paths change
hold what is in them by reference (``Known.in_branches``). An item then is the number of a row (see ``heaps``), so the
list is one that grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runtime.kinds import is_a
from runtime.tracer.control.branches import Path
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Session
from runtime.tracer.values import heaps


def settle(session: Session, paths: Sequence[Path], is_older: Callable[[Place], bool]) -> None:
    """Let lists hold by reference what is in them, at the end of each path alike: those that paths changed, and those
    that are among the variables and the result of a path.

    ``is_older``: whether a place was there before the paths.
    """
    if not session.call.known.in_branches:
        return
    alive = [path for path in paths if not path.ended]
    changed = {place: None for path in alive for place in path.places
               if place.kind == "content" and is_a(place.owner, list) and is_older(place)}
    for path in alive:
        owners = [place.owner for place in path.places if place.kind == "content" and is_a(place.owner, list)]
        owners += [place.owner for place in changed if place not in path.places]
        with path.goes_on(session):
            heaps.settle(session, [one for one in (*owners, *path.names, path.result) if heaps.is_there(session, one)])


__all__ = ["settle"]
