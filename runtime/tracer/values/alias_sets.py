"""Which tensors the items of lists that grow may be: after a write to one, what such a list holds is not known.

Which item a tensor is, only a run knows, so a write to a tensor that is in a list cannot be carried to the list. The
lists, and the items that came out of them, may not be read any more. All lists that may hold items of each other,
because one was made from the other, form an *item alias set*, together with the memory of their items (``AliasSet``).
An item that came out of a list may become one of another list, and one tensor an item of two: sets know which others
have such items, and what is asked of a tensor follows it through all of them (``_may_be``, ``_may_be_in``).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.kinds import is_a
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
        self._from: set[AliasSet] = set()
        """Sets whose items became items of this one: an item of this one may be any of theirs."""
        self._into: set[AliasSet] = set()
        """The other way round."""
        self._shared: set[AliasSet] = set()
        """Sets into which something was put that was put into this one, too."""
        self.cached_by: tuple[str, Location | None] | None = None
        """The cached function that gave an item, and the call's place, where each run makes it anew."""

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
            into._from |= other._from
            into._into |= other._into
            into._shared |= other._shared
            into.cached_by = into.cached_by or other.cached_by
        return into

    def hold(self, grown: structure.Growing) -> None:
        """Add a list to the set."""
        self.find()._lists.append(weakref.ref(grown))

    def note_put(self, storages: Iterable[Storage]) -> None:
        """Memory of what became an item. What it is in already is noted for when nothing but the lists has it."""
        mine = self.find()
        for storage in storages:
            for other in _sets(storage):
                if other is mine:
                    continue
                if storage in other._got:
                    mine._from.add(other)
                    other._into.add(mine)
                if storage in other._put:
                    mine._shared.add(other)
                    other._shared.add(mine)
            mine._put.add(storage)

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

    def may_hold(self, storage: Storage) -> bool:
        """Whether a tensor may be an item of the set's lists, also through items of other lists."""
        return self.find() in _may_be_in(_may_be(storage))

    def lose(self, session: Session, storage: Storage) -> bool:
        """Memory of the set is written: what its lists and items hold from now on is not known, and may not be read.

        Whether some of that is the caller's, who would see it. Nothing is asked about which lists and items are still
        in use: those that are not, nobody reads.
        """
        location = session.location()
        memory = _may_be(storage)
        sets = _may_be_in(memory)
        others = {one for one in memory if not is_a(one, AliasSet)}
        others.update(item for one in sets for item in one._got)
        reached = {more for other in others if other is not storage for more in related(session, other)} - {storage}
        for other in reached:
            other.lost = Lost(location)
        for one in sets:
            for ref in one._lists:
                grown = ref()
                if grown is not None:
                    grown.lost = Lost(location)
        return any(other.origin is not None for other in reached)


def may_be_one(a: Storage, b: Storage) -> bool:
    """Whether two tensors may be one, because an item that came out of a list is any of those put in."""
    if a is b:
        return any(a in one._got for one in _sets(a))
    return not _may_be(a).isdisjoint(_may_be(b))


def _may_be(storage: Storage) -> set[Storage | AliasSet]:
    """The memory that a tensor may have: its own, and of an item that came out of a list all that was put in. A set
    stands for the memory in its lists that nothing else has."""
    found: set[Storage | AliasSet] = {storage}
    for one in _closure((one for one in _sets(storage) if storage in one._got), lambda one: one._from):
        found.add(one)
        found.update(one._put)
        found.update(other.find() for other in one._shared)
    return found


def _may_be_in(memory: Iterable[Storage | AliasSet]) -> set[AliasSet]:
    """The sets whose lists may hold some of the memory."""
    begin = [one for part in memory for one in ([part] if is_a(part, AliasSet) else _sets(part))]
    return _closure(begin, lambda one: one._into)


def _closure(begin: Iterable[AliasSet], of: Callable[[AliasSet], set[AliasSet]]) -> set[AliasSet]:
    """Sets, and what is reached from them."""
    found: set[AliasSet] = set()
    todo = list(begin)
    while todo:
        one = todo.pop().find()
        if one not in found:
            found.add(one)
            todo += of(one)
    return found


def _sets(storage: Storage) -> list[AliasSet]:
    return [known.find() for known, _ in storage.alias_sets]


def inherit(storage: Storage, like: Storage) -> bool:
    """Memory that stands for other memory, on some path or from some iteration, is in its sets; whether newly."""
    new = False
    for alias_set, location in like.alias_sets:
        new = alias_set.add(storage, like) or new
        if all(known.find() is not alias_set.find() for known, _ in storage.alias_sets):
            storage.alias_sets.append((alias_set, location))
    return new
