"""The items of one of several containers as one list, whose length only the run knows if theirs differ.

    ys = [t for t in ts if t.sum() > 0] or [x]
    for a, b in zip(ys, xs): ...           a list that grew, or another of one item: there is one loop for both
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.calls.sequences import LiveItems, StagedSequence, changed
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, python_method
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values.choices import lengths


def differ_in_length(value: Any) -> bool:
    """Whether a value is one of several that do not all have the same number of items, as far as the trace knows."""
    if not is_a(value, Choice):
        return False
    found = lengths(value)
    return len(found) != 1 or None in found


def as_one_list(session: Session, choice: Choice) -> list[Any]:
    """A new list of what the one that it is holds now."""
    items: list[Any] = []

    def path(option: Any) -> Callable[[], None]:
        def fill() -> None:
            session.journal.note_content(items)
            items.extend(call(list, option))

        return fill

    tracer_cond.switch(session, choice.selector, list(map(path, choice.options)), NO_NAMES)
    return items


def items_chosen(session: Session, value: Any) -> Any:
    """The items of an object whose ``__iter__``, written by the user, gives one of several iterators; others as they
    are."""
    if not session.call.known.choosing:
        return value
    method = python_method(value, "__iter__")
    if method is None or place_of(method) not in session.call.known.choosing:
        return value
    found = call(method, value)
    return as_one_list(session, found) if is_a(found, Choice) else found


def place_of(method: types.FunctionType) -> str:
    """What tells a method from others, in each attempt at a trace."""
    return f"{method.__code__.co_filename}:{method.__code__.co_firstlineno}"


class _Settled(StagedSequence):
    """The items of that list, for an iterator that takes them later: until then the containers may not be changed."""

    python_name = "list"

    def __init__(self, session: Session, choice: Choice) -> None:
        self._items = LiveItems(as_one_list(session, choice))
        self._held = [(one, _content(one)) for one in choice.options]

    def length(self, session: Session) -> Any:
        self._require_unchanged(session)
        return self._items.length(session)

    def get(self, session: Session, index: Any) -> Any:
        self._require_unchanged(session)
        return self._items.get(session, index)

    def _require_unchanged(self, session: Session) -> None:
        for container, held in self._held:
            now = _content(container)
            if len(now) != len(held) or any(a is not b for a, b in zip(now, held)):
                raise changed(session, container)


def _content(container: Any) -> list[Any]:
    return list(container if is_a(container, tuple) else Place("content", container).get())


def settled(session: Session, value: Any) -> Any:
    """What an iterator will take items from later: for one of several lists, of several lengths, a sequence of its."""
    if differ_in_length(value) and all(is_a(one, (list, tuple, deque)) for one in value.options):
        return _Settled(session, value)
    return value


__all__ = ["as_one_list", "differ_in_length", "items_chosen", "place_of", "settled"]
