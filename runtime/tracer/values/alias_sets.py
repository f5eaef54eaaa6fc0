"""Which tensors the items of lists that grow may be: after a write to one, what such a list holds is not known.

Which item a tensor is, only a run knows, so a write to a tensor that is in a list cannot be carried to the list. The
lists, and the items that came out of them, may not be read any more. All lists that may hold items of each other,
because one was made from the other, form an *item alias set*, together with the memory of their items (``AliasSet``).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.tracer.memory.aliases import related

if TYPE_CHECKING:
    from runtime.ir import Location
    from runtime.tracer.memory.storage_table import Storage
    from runtime.tracer.recording.session import Session
    from runtime.tracer.values import structure


@dataclass(frozen=True)
class Lost:
    """Where in the source a tensor was written that may be an item."""

    location: Location | None

    def error(self, session: Session) -> Exception:
        """The error for whoever reads what is lost, located at the write: reads may come after the user's last line."""
        return session.error(
            "an in-place write to a tensor that may share its memory with something that is read later: a list that "
            "grows, or an item of a list that grows; which tensors those hold is only known while the Program runs",
            hint="Write out of place (x = x + y instead of x += y), or .clone() the tensor before it is shared.",
            code="D2S222",
            location=self.location,
        )


class AliasSet:
    """An item alias set: lists that grow, and the memory of their items. Merged sets are one from then on."""

    def __init__(self) -> None:
        self._one: AliasSet | None = None
        self._lists: list[weakref.ref[structure.Growing]] = []
        self._put: weakref.WeakSet[Storage] = weakref.WeakSet()
        self._got: weakref.WeakSet[Storage] = weakref.WeakSet()
        """Memory that was put into a list, and memory that came out as an item: the latter is one of the former."""

    def find(self) -> AliasSet:
        """The set that this one is part of now."""
        while self._one is not None:
            self = self._one
        return self

    def merge(self, other: AliasSet) -> AliasSet:
        """Make two sets one."""
        into, other = self.find(), other.find()
        if into is not other:
            other._one = into
            into._lists += other._lists
            into._put |= other._put
            into._got |= other._got
        return into

    def hold(self, grown: structure.Growing) -> None:
        """Add a list to the set."""
        self.find()._lists.append(weakref.ref(grown))

    def note_put(self, storages: Iterable[Storage]) -> None:
        """Memory of what became an item."""
        self.find()._put.update(storages)

    def note_got(self, storage: Storage) -> None:
        """Memory of what came out as an item."""
        self.find()._got.add(storage)

    def add(self, storage: Storage, like: Storage) -> bool:
        """Memory that may be that of a member; whether it was none itself."""
        one = self.find()
        new = False
        for members in (one._put, one._got):
            if like in members and storage not in members:
                members.add(storage)
                new = True
        return new

    def may_be_one(self, a: Storage, b: Storage) -> bool:
        """Whether two tensors may be one, because an item that came out of a list is any of those put in."""
        one = self.find()
        members = one._put | one._got
        return (a in one._got and b in members) or (b in one._got and a in members)

    def lose(self, session: Session, storage: Storage) -> bool:
        """Memory of the set is written: what its lists and items hold from now on is not known, and may not be read.

        Whether some of that is the caller's, who would see it. Nothing is asked about which lists and items are still
        in use: those that are not, nobody reads.
        """
        one, location = self.find(), session.location()
        others = one._got if storage not in one._got else one._got | one._put
        reached = {more for other in others if other is not storage for more in related(session, other)} - {storage}
        for other in reached:
            other.lost = Lost(location)
        for ref in one._lists:
            grown = ref()
            if grown is not None:
                grown.lost = Lost(location)
        return any(other.origin is not None for other in reached)


def inherit(storage: Storage, like: Storage) -> bool:
    """Memory that stands for other memory, on some path or from some iteration, is in its sets; whether newly."""
    new = False
    for alias_set, location in like.alias_sets:
        new = alias_set.add(storage, like) or new
        if all(known.find() is not alias_set.find() for known, _ in storage.alias_sets):
            storage.alias_sets.append((alias_set, location))
    return new
