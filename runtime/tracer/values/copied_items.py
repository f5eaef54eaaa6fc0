"""Lists, dicts and records that may be several items of lists that grow, or an item and something else.

    c = [x]
    while i < n:
        out.append(c)        # in eager PyTorch the very same list each time; copies here
        i += 1
    return out, c

Copies are enough while nobody can tell. Writes and ``is`` ask for references (``shared_items``); what leaves the call
is the caller's, who can do both. So where copies of one object may leave, the trace begins again with references for
its class. Nothing is asked where each item is made for its list alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runtime.kinds import is_a
from runtime.tracer.python_state import shared_items
from runtime.tracer.values import structure

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session
    from runtime.tracer.values.alias_sets import AliasSet

Place = tuple[Any, int]
"""A list and a position in it."""


class Copied:
    """What one trace knows of them."""

    def __init__(self) -> None:
        self.often: set[type] = set()
        """Classes of which one object may have become an item more than once."""
        self.carried: dict[int, Any] = {}
        """By identity: objects that stand for what an iteration began with, or what a loop left."""
        self.entered: dict[tuple[int, int, int], Any] = {}
        """Items, by identity, and their places in lists that came to grow (by identity, kept alive): a loop's body is
        traced several times, and each time they enter."""
        self.leaving: set[type] = set()
        """Classes of which copies leave the call as items."""
        self.alias_sets: list[AliasSet] = []
        """Those of the lists that leave."""
        self.alone: set[type] = set()
        """Classes of which an object leaves the call that is an item as well."""


def put(session: Session, value: Any, place: Place | None = None, twice: bool = False) -> None:
    """A list, dict or record becomes an item of a list that grows, or part of one, which holds a copy of it.

    ``place``: where it is in a list that only comes to grow. ``twice``: it is in this item more than once.
    """
    shared_items.note_dict(session, value)
    copied = session.containers.copied
    if place is not None and not twice:
        key = (id(value), id(place[0]), place[1])
        if key in copied.entered:  # on another path, or in another trace of a loop's body
            shared_items.hold(session, value)
            return
        copied.entered[key] = place[0]
    known = id(value) in session.containers.held_in_lists or id(value) in copied.carried
    if known or not session.origins.is_made_anew(value):
        copied.often.add(type(value))
    shared_items.hold(session, value)


def put_again(session: Session, item: structure.Structure) -> None:
    """Items of a list that grows become items of one that may have them already."""
    session.containers.copied.often.update(_classes(item))


def leave(session: Session, grown: structure.Growing) -> None:
    """A list that grew leaves the call."""
    copied, classes, alias_set = session.containers.copied, set(_classes(grown.item)), grown.alias_set.find()
    copied.leaving |= classes
    if any(one.find() is alias_set for one in copied.alias_sets):  # another list with the same items
        copied.often |= classes
    copied.alias_sets.append(alias_set)


def leave_alone(session: Session, value: Any) -> None:
    """An object leaves the call, other than as an item of a list that grows."""
    if id(value) in session.containers.held_in_lists:
        session.containers.copied.alone.add(type(value))


def require_references(session: Session) -> None:
    """Begin the trace again where copies of one object may leave the call. Everything that leaves it was named."""
    copied = session.containers.copied
    both = copied.leaving & (copied.often | copied.alone)
    if both:
        session.hold_by_reference(*both)


def _classes(item: structure.Structure) -> Iterator[type]:
    """The classes of lists, dicts and records that items of this structure are, or hold."""
    if is_a(item, structure.Array):
        if item.kind is not tuple:
            yield item.kind
        yield from _classes(item.item)
    elif is_a(item, structure.Options):
        for option in item.options:
            yield from _classes(option)
    elif is_a(item, (structure.Sequence, structure.Fields)):
        cls = item.kind if is_a(item, structure.Sequence) else item.cls
        if not issubclass(cls, tuple):
            yield cls
        for inner in item.items:
            yield from _classes(inner)


__all__ = ["Copied", "leave", "leave_alone", "put", "put_again", "require_references"]
