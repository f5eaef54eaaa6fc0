"""Lists that paths put other lists, dicts and objects into: after too many paths, they hold those by reference.

    rows = []
    for v in x.tolist():       # unrolled
        if v > 0:
            rows.append([v])   # or {"n": v}: after each branch ``rows`` is one of twice as many lists as before

A list is one of several after such a branch: which of the lists made so far each item is has to be known, as they may
be changed. Where that would be too many, the trace begins again and lets lists that paths change hold what is in them
by reference (``Known.in_branches``). An item then is the number of a row (see ``heaps``), so the list is one that
grows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from runtime.errors import Dy2StaticError
from runtime.tracer.ambient import objects
from runtime.tracer.control.branches import Path
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Session
from runtime.tracer.values import containers, heaps, structure


@contextlib.contextmanager
def by_reference_instead(session: Session, paths: Sequence[Path]) -> Iterator[None]:
    """While what paths leave is joined: where a list would be one of too many, the trace begins again with lists that
    hold by reference what is in them.

    Raises:
        Restart: So that they do.
    """
    try:
        yield
    except Dy2StaticError as error:
        if error.code == "D2S255":
            session.hold_by_reference(*_classes(session, paths), in_branches=True)
        raise


def settle(session: Session, paths: Sequence[Path], is_older: Callable[[Place], bool]) -> None:
    """Let lists hold by reference what is in them, at the end of each path alike: those that paths changed, and those
    that are among the variables and the result of a path.

    ``is_older``: whether a place was there before the paths.
    """
    if not session.call.known.in_branches:
        return
    alive = [path for path in paths if not path.ended]
    changed = {place: None for path in alive for place in path.places
               if place.kind == "content" and isinstance(place.owner, list) and is_older(place)}
    for path in alive:
        owners = [place.owner for place in path.places if place.kind == "content" and isinstance(place.owner, list)]
        owners += [place.owner for place in changed if place not in path.places]
        with path.goes_on(session):
            heaps.settle(session, [one for one in (*owners, *path.names, path.result) if heaps.is_there(session, one)])


def _classes(session: Session, paths: Sequence[Path]) -> set[type]:
    """The classes of what lists hold that paths left, and that can be held by reference."""
    found: set[type] = set()
    for path in paths:
        if path.ended:
            continue
        with path.inside(session):
            owners = [place.owner for place in path.places if place.kind == "content"]
            for owner in (*owners, *path.names, path.result):
                if isinstance(owner, list) or isinstance(owner, structure.Choice):
                    found |= {type(item) for item in _items(owner) if _can_be_row(session, item)}
    return found


def _items(value: Any) -> Iterable[Any]:
    """What a list holds on any path, and what lists, dicts and tuples among that do."""
    todo, seen = [value], set()
    while todo:
        one = todo.pop()
        if isinstance(one, structure.Choice):
            todo += one.options
        elif id(one) not in seen:
            seen.add(id(one))
            if one is not value:
                yield one
            if isinstance(one, tuple):
                todo += one
            elif structure.is_container(one) and structure.row_of(one) is None:
                todo += [item for _, item in containers.items_of(one)]


def _can_be_row(session: Session, value: Any) -> bool:
    if id(value) in session.objects.externals:
        return False
    if type(value) in (list, dict):
        return True
    return objects.is_record(value) and id(value) in session.objects.created and objects.can_be_rebuilt(value)


__all__ = ["by_reference_instead", "settle"]
