"""References to the user's lists and dicts that only the tracer has: to put them back, and to compare them.

Whether anything but a variable that was just assigned still refers to an object is read off its reference count; what
the tracer keeps of the enclosing constructs must not count.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runtime.tracer.journal import Place

if TYPE_CHECKING:
    from runtime.tracer.session import Session

Note = Callable[[], Iterable[Any]]
"""Gives every object that the tracer refers to at one place, once for each reference; a Place for what it is of."""


@contextmanager
def noted(session: Session, note: Note) -> Iterator[None]:
    """While a construct is traced, ``note`` gives what the tracer refers to for it."""
    session.notes.append(note)
    try:
        yield
    finally:
        session.notes.pop()


def own_references(session: Session, wanted: Iterable[int], *frames: dict[Place, Any]) -> Counter[int]:
    """How many references to the wanted objects, by identity, are the tracer's own.

    ``frames``: closed ones of the journal that are still kept.
    """
    keys = set(wanted)
    noted = list(_noted(session))
    held = session.journal.holders(*frames, {value: None for value in noted if isinstance(value, Place)})
    found = Counter({key: held[key] + (key in session.created) for key in keys})
    for value in noted:
        if id(value) in keys:
            found[id(value)] += 1
    return found


def _noted(session: Session) -> Iterator[Any]:
    for note in session.notes:
        yield from note()
    yield from session.journal.before()
    for picture in session.pictures:
        for value, content in picture:
            yield value
            if isinstance(content, dict):
                yield from content.values()
            elif isinstance(content, list):
                yield from content


def references(value: Any) -> int:
    """How many references there are to an object that one variable of the caller's holds."""
    return sys.getrefcount(value)


def _one_variable() -> int:
    values: list[Any] = [[]]
    value = values.pop()
    return references(value)


ALONE = _one_variable()
"""What ``references`` gives where nothing else holds the object."""


def _one_argument(value: Any) -> int:
    return references(value)


ARGUMENT = _one_argument([]) - ALONE + 1
"""How many references an argument of a Python function counts for: before Python 3.11 the caller keeps one, too."""
