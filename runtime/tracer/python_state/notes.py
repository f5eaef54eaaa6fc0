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

from runtime.kinds import is_a
from runtime.tracer.python_state.journal import Place

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

Note = Callable[[], Iterable[Any]]
"""Gives every object that the tracer refers to at one place, once for each reference; a Place for what it is of."""


@contextmanager
def noted(session: Session, note: Note) -> Iterator[None]:
    """While a construct is traced, ``note`` gives what the tracer refers to for it."""
    session.constructs.notes.append(note)
    try:
        yield
    finally:
        session.constructs.notes.pop()


def own_references(session: Session, wanted: Iterable[int], *frames: dict[Place, Any]) -> Counter[int]:
    """How many references to the wanted objects, by identity, are the tracer's own.

    ``frames``: closed ones of the journal that are still kept.
    """
    keys = set(wanted)
    noted = list(_noted(session))
    existing = session.containers.known_to_exist
    held = session.journal.holders(*frames, {value: None for value in noted if is_a(value, Place)})
    found = Counter({key: held[key] + (key in session.objects.created) + (key in existing) for key in keys})
    for tried in session.constructs.attempts:
        found.update({key: tried.references[key] for key in keys})
    for value in noted:
        if id(value) in keys:
            found[id(value)] += 1
    return found


def _noted(session: Session) -> Iterator[Any]:
    for note in session.constructs.notes:
        yield from note()
    yield from session.journal.before()
    for picture in session.constructs.pictures:
        for value, content in picture:
            yield value
            if is_a(content, dict):
                yield from content.values()
            elif is_a(content, list):
                yield from content


def others(value: Any) -> int:
    """How many references there are to an object, beside the one variable of the caller's that holds it."""
    return sys.getrefcount(value) - _one_variable()


def _one_variable() -> int:
    """What a function that is given such a variable counts. Python's version tells, and whether a debugger or
    ``torch.compile`` has a say in how frames run; so it is asked each time."""
    values: list[Any] = [[]]
    value = values.pop()
    return _count(value)


def _count(value: Any) -> int:
    return sys.getrefcount(value)
