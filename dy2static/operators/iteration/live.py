"""What a loop goes over, while its body may change that: a list of work to which the loop itself adds.

    for t in todo:
        if t.sum() > 1:
            todo.append(t / 2)      from the next item on, the length is only known while the Program runs

Python's iterators read the container's own storage, which holds a stand-in by then. So the loop looks at what it goes
over before it takes an item, and goes on as a staged loop, from the position where it stands.
"""

from __future__ import annotations

import builtins
from collections import deque
from typing import Any

from dy2static.operators.calls.sequences import LiveItems, StagedEnumerate, StagedSequence, StagedZip, changed
from dy2static.operators.shared.staging import Session, python_method
from runtime.kinds import is_a
from runtime.tracer.ambient import shown
from runtime.tracer.values.containers import several
from runtime.tracer.values.structure import growing

_BY_POSITION = (list, tuple, range, str)


class GoneOver:
    """The containers that a loop goes over."""

    def __init__(self, iterable: Any, to_its_end: bool) -> None:
        """``to_its_end``: nothing takes items from the iterable afterwards, or nobody else has it.

        (Another iterator over what changed gives no item to anybody: ``containers.require_read``.)
        """
        watched = [iterable] if is_a(iterable, (list, deque, dict, set)) else shown.read_by(iterable)
        self._watched = [one for one in watched if python_method(one, "__iter__") is None]
        found = _source(iterable) if self._watched and (to_its_end or not hasattr(type(iterable), "__next__")) else None
        self._source = found if _is_of_lists(self._watched) else None

    def rest(self, session: Session) -> StagedSequence | None:
        """The items by position, if how many there are is now only known while the Program runs.

        Raises:
            TraceError: D2S266, they cannot be had by position.
        """
        if not self._watched or not (session.containers.has_growing or session.containers.has_contents):
            return None
        differing = [one for one in self._watched if several(one) is not None or growing(one) is not None]
        if not differing:
            return None
        if self._source is None or any(several(one) is not None for one in differing):
            raise changed(session, differing[0])
        return self._source


def _is_of_lists(containers: list[Any]) -> bool:
    return all(is_a(one, list) for one in containers)


def _source(iterable: Any) -> StagedSequence | None:
    """What an iterable, or an iterator that nothing was taken from since, gives at each position; None if unknown."""
    if is_a(iterable, _BY_POSITION):
        return LiveItems(iterable)
    reduced = iterable.__reduce__() if type(iterable) in _ITERATORS else ()
    if not reduced:
        return None
    made, inner, *state = reduced
    if made is builtins.iter and is_a(inner[0], _BY_POSITION):
        return LiveItems(inner[0], state[0] if state else 0)
    if made is enumerate:
        first = _source(inner[0])
        return None if first is None else StagedEnumerate(first, inner[1])
    if made is zip:
        parts = [_source(one) for one in inner]
        known = [one for one in parts if one is not None]
        return StagedZip(known, bool(state and state[0])) if len(known) == len(parts) else None
    return None


_ITERABLES: tuple[Any, ...] = ([], (), range(1), range(1 << 70), "", "\u00fc")
_ITERATORS = (enumerate, zip, *(type(iter(one)) for one in _ITERABLES))

__all__ = ["GoneOver"]
