"""Iterators that a call is given which is done once for each of several values: each takes the items anew.

    zip(itertools.count(), name)        a name that differs between paths
    s.join(iter(rows))                  so does ``s``
"""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Session
from runtime.tracer.ambient import contents
from runtime.tracer.values import unjournaled

_BY_PLACE = tuple(kind for kind in contents.READING if kind not in (
    enumerate, zip, map, filter, itertools.chain, itertools.islice))
"""Iterators that only know the container and how far they came."""


def for_option(session: Session, value: Any) -> Any:
    """An argument of a call that is done once for each of several values: of an iterator that nothing else has, and
    which some values may take items from, another one that starts where it is."""
    if not contents.is_iterator(value) or any(one is value for one, _ in unjournaled.picture(session)):
        return value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = _another(value)
    if found is None:
        return value
    memo(session).iterators[id(found)] = (found, session.journal.frames[-1])
    return found


def taken_by_option(session: Session, value: Any) -> Any:
    """The same where the call takes the items.

    Raises:
        TraceError: D2S266: something else has the iterator, or there is no other that gives the same items.
    """
    found = for_option(session, value)
    if found is not value or not contents.is_iterator(value):
        return found
    if any(one is value for one, _ in unjournaled.picture(session)):
        raise unjournaled.advanced(session)
    raise session.error(
        f"a {type(value).__name__} is given together with a value that differs between paths: each of them would take "
        "items from it", code="D2S266", hint="Make a list of its items before: items = list(...).")


def _another(iterator: Any) -> Any:
    """An iterator that gives what another one will give, which stays where it is; None if there is none."""
    kind = type(iterator)
    if kind not in (*_BY_PLACE, itertools.count, itertools.repeat, itertools.cycle, enumerate, zip):
        return None
    try:
        reduced = iterator.__reduce__()
    except (TypeError, AttributeError):  # later versions of Python say nothing of those of itertools
        return None
    if kind not in (itertools.cycle, enumerate, zip):
        return copy.copy(iterator)
    state = reduced[2] if len(reduced) > 2 else None
    if kind is itertools.cycle and state is not None and state[0]:
        return None  # what it will give again is its own
    inner = [_another(one) if hasattr(type(one), "__next__") else one for one in reduced[1]]
    if any(one is None for one in inner):
        return None
    return zip(*inner, strict=bool(state)) if kind is zip else kind(*inner)


__all__ = ["for_option", "taken_by_option"]
