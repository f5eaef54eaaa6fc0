"""Containers that the paths of a construct made: those known in the same places become one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import CellType
from typing import Any

from runtime.kinds import is_a
from runtime.tracer.control import existence
from runtime.tracer.control.branches import Path
from runtime.tracer.control.join import NOWHERE, outside
from runtime.tracer.python_state import held, shared_items
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Session
from runtime.tracer.values import containers, structure, unification


class Merged:
    """The containers that paths made: what each held leaves its path, and those known in the same places become one."""

    def __init__(
        self, session: Session, paths: Sequence[Path], alone: Sequence[Any], old: frozenset[int], objects: set[int],
        of: structure.Choice | None,
    ) -> None:  # fmt: skip
        """``alone``: by variable, the container with which it began, if the variable is all that refers to it."""
        self._session = session
        self._old, self._objects = old, objects
        self._left: set[int] = set()
        self.fresh: list[list[Any]] = [[] for _ in paths]
        """By path, the containers that it made and that leave it."""
        self.groups: list[tuple[Any, dict[int, Any]]] = []
        """What stands for each merged container, with what it is on the paths that have one."""
        self.made: dict[int, structure.Made] = {}
        self.stand_ins: dict[Any, Any] = {}
        self.contents: list[tuple[list[Any], structure.Structure, str]] = []
        """For each merged container, what the paths leave in it and in its attributes, as items of a Join."""
        self.places: list[Place] = []
        """Their places."""
        self._older: dict[int, tuple[dict[int, Any], Any]] = {}
        """The groups that have an older container, with that."""
        found: dict[tuple[containers.Kind, Any], dict[int, Any]] = {}
        for number, path in enumerate(paths):
            if path.ended:
                continue
            with path.inside(session):
                leaving = self._leaving(path)
                self._left |= self._unreadable(path, leaving)
                self.fresh[number] = [fresh.value for fresh in leaving.containers.values()]
                for fresh in leaving.containers.values():
                    place = Place("content", fresh.value)
                    if place not in path.places:
                        path.places[place] = place.get()
                    if not fresh.fixed:
                        key = (containers.kind_of(fresh.value), frozenset(fresh.positions))
                        found.setdefault(key, {})[number] = fresh.value
                for position, value in enumerate(path.names):
                    if value is alone[position] and containers.is_container(value) and not self._is_new(value):
                        if self._is_only(value, position, paths) and id(value) not in session.containers.hidden:
                            key = (containers.kind_of(value), frozenset({("name", position)}))
                            found.setdefault(key, {})[number] = value
                            path.places.setdefault(Place("content", value), Place("content", value).get())
                path.contents = {
                    place: containers.content(place.owner, None if of is None else (of, number))
                    for place in path.places
                    if place.kind == "content"
                }
        for (kind, positions), members in found.items() if any(path.existing for path in paths) else ():
            self._add_missing(paths, kind, positions, members)
        ends = [path.places for path in paths if not path.ended]
        self._by_themselves = containers.by_themselves(session, ends, of)
        self._merge(paths, {key: members for key, members in found.items() if len(members) > 1})

    def _add_missing(
        self, paths: Sequence[Path], kind: containers.Kind, positions: Iterable[tuple[Any, ...]],
        members: dict[int, Any],
    ) -> None:  # fmt: skip
        """Where the other paths have an older container in one of the places of new ones, and those that made these
        never have it: it is one with them."""
        session = self._session
        others = [number for number, path in enumerate(paths) if not path.ended and number not in members]
        makers = [paths[number] for number in members]
        if not all(map(self._is_new, members.values())):
            return
        owners = {id(place.owner): place.owner for path in paths for place in path.places}
        for number, position in itertools.product(others, positions):
            with paths[number].inside(session):
                older = containers.at(session, *_start(paths[number], position, owners))
            taken = any(older is one for _, one in self._older.values())
            if older is None or taken or self._is_new(older) or containers.kind_of(older) != kind:
                continue
            if all(existence.is_missing(path, older) for path in makers):
                self._older[id(next(iter(members.values())))] = members, older
                break
        else:
            return
        for number in others:
            path = paths[number]
            if not existence.is_missing(path, older):
                members[number] = older
                with path.inside(session):
                    place = Place("content", older)
                    path.places.setdefault(place, place.get())
                    path.contents.setdefault(place, containers.content(older))

    def _is_only(self, value: Any, position: int, paths: Sequence[Path]) -> bool:
        """Whether no path leaves a value anywhere but in one variable."""
        held = ((place, one) for path in paths for place, one in (*enumerate(path.names), (-1, path.result)))
        return not any(one is value and place != position for place, one in held)

    def _leaving(self, path: Path) -> containers.Leaving:
        session = self._session
        leaving = containers.Leaving(session, self._is_new)
        for name, value in enumerate(path.names):
            leaving.walk(value, ("name", name))
        leaving.walk(path.result, ("result",))
        waiting = dict(path.places)
        while waiting:  # what is stored to an object that the path made leaves it with the object
            ready = [place for place in waiting if not self._belongs(place) or id(place.owner) in leaving.reached]
            if not ready:
                break
            for place in ready:
                value = waiting.pop(place)
                if place.kind == "content" and id(place.owner) in leaving.containers:
                    continue
                where = (place.kind, id(place.owner), place.name)
                if place.kind == "content":
                    for key, item in leaving.items(place.owner):
                        leaving.walk(item, (*where, key))
                else:
                    leaving.walk(value, where, place.kind == "attribute" and is_a(place.owner, CellType))
        return leaving

    def unreadable(self, paths: Sequence[Path]) -> list[tuple[Place, Any]]:
        """The places that no path brings out, with what they hold."""
        return [(place, held) for path in paths for place, held in path.places.items() if id(place.owner) in self._left]

    def _unreadable(self, path: Path, leaving: containers.Leaving) -> set[int]:
        """The containers and objects that the path made and that nothing which leaves it leads to, by identity, if what
        they hold is not to be read where the path ends: a loop or branch inside it made them, and its own notes know
        them (of an exception that it raised, say)."""
        left = [
            place
            for place in path.places
            if place.kind in ("content", "attribute")
            and not is_a(place.owner, CellType)
            and self._belongs(place)
            and id(place.owner) not in leaving.reached
        ]
        if not left:
            return set()
        readable = {storage: value for storage, value in path.storages.items() if self._session.visible(value)}
        return {id(place.owner) for place in left if not outside(self._session, readable, place.get())}

    def _is_new(self, value: Any) -> bool:
        key = id(value)
        session = self._session
        known = (self._old, self._objects, session.objects.externals, session.containers.hidden)
        if any(key in one for one in known):
            return False
        return not held.is_held(session, value)

    def _belongs(self, place: Place) -> bool:
        """Whether a place is part of something that the path made."""
        return is_new(self._session, place, self._old, self._objects)

    def leaves(self, place: Place) -> bool:
        """Whether a place that paths stored to is seen after them, and joined on its own."""
        if id(place.owner) in self._left:
            return False
        return id(place.owner) not in self._session.containers.hidden and id(place.owner) not in self.made

    def target(self, place: Place) -> Place:
        """Where what the paths leave in a place is put: of what stands for the content of one path, if code that runs
        on that path alone has it in its hands, there (see ``containers.by_themselves``)."""
        inner = self._by_themselves.get(id(place.owner), ()) if place.kind == "content" else ()
        return Place("content", inner[0]) if len(inner) == 1 else place

    def _merge(self, paths: Sequence[Path], groups: dict[tuple[containers.Kind, Any], dict[int, Any]]) -> None:
        """Make each group one, as far as its contents have one structure: a group that has not stays apart, and then
        the contents that refer to its members differ in another way."""
        session = self._session
        left = [(members, kind.attributes) for (kind, _), members in groups.items()
                if any(map(self._is_new, members.values()))]  # fmt: skip
        while True:
            self.made = {
                id(value): structure.Made(number, type(value))
                for number, (members, _) in enumerate(left)
                for value in members.values()
            }
            joined = [self._joined(paths, _contents(members)) for members, _ in left]
            one = [self._is_one(members, s) for (members, _), s in zip(left, joined)]
            if all(one):
                break
            left = [group for group, kept in zip(left, one) if kept]
        for number, ((members, names), content) in enumerate(zip(left, joined)):
            first = self._stand_in(members)
            self.groups.append((first, members))
            self.stand_ins[number] = first
            shared_items.note_same(session, members.values(), first)
            self._add(paths, _contents(members), content, Place("content", first))
            for name in names:
                places = {n: Place("attribute", value, name) for n, value in members.items()}
                self._add(paths, places, self._joined(paths, places), Place("attribute", first, name))

    def _stand_in(self, members: dict[int, Any]) -> Any:
        """What stands for a group: an older one that some have instead of a new one, as what refers to it goes on."""
        for one, older in self._older.values():
            if one is members:
                return older
        return next(value for value in members.values() if self._is_new(value))

    def _is_one(self, members: dict[int, Any], content: structure.Structure) -> bool:
        """Whether a group becomes one container, with such a content. Where it has one of several, each new one would
        be another thing that later paths may have in its place; so one with an older one has a few."""
        if is_a(content, structure.Options):
            return len(content.options) <= _FEW and any(one is members for one, _ in self._older.values())
        return not (is_a(content, structure.Known) and content.value)

    def context(self) -> structure.JoinContext:
        """What joins of what the paths leave know of these containers."""
        return structure.JoinContext(self.made, self.stand_ins, arrays_hold_containers=False)

    def _add(
        self, paths: Sequence[Path], members: dict[int, Place], joined: structure.Structure, place: Place
    ) -> None:
        """A place of a merged container; ``members``: what it is on the paths that have one."""
        values = [_end(path, members[n]) if n in members else NOWHERE for n, path in enumerate(paths)]
        self.contents.append((values, joined, ""))
        self.places.append(place)

    def _joined(self, paths: Sequence[Path], members: dict[int, Place]) -> structure.Structure:
        """The structure that carries what any of a group's places holds at the end of its path."""
        context = self.context()
        pictures: list[structure.Structure] = []
        for number, place in members.items():
            with paths[number].inside(self._session):
                picture = unification.structure_of(self._session, _end(paths[number], place), context)
                pictures.append(unification.carried(self._session, picture, context))
        joined = pictures[0]
        for picture in pictures[1:]:
            joined = unification.unify(self._session, joined, picture, context)
        return joined


_FEW = 4
"""So many contents may a container have that is one with an older one."""


def _start(path: Path, position: tuple[Any, ...], owners: Mapping[int, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Where a place that ``Leaving`` names begins: a value at the end of a path, and the way from there."""
    if position[0] == "name":
        return path.names[position[1]], position[2:]
    if position[0] == "result":
        return path.result, position[1:]
    kind, owner, name, *way = position
    value = owners[owner] if kind == "content" else Place(kind, owners[owner], name).get()
    return value, tuple(way)


def _contents(members: dict[int, Any]) -> dict[int, Place]:
    return {number: Place("content", value) for number, value in members.items()}


def _end(path: Path, place: Place) -> Any:
    """What a place of a container that a path made holds at the path's end."""
    if place.kind == "content":
        return path.contents[place]
    return path.places[place] if place in path.places else place.get()


def is_new(session: Session, place: Place, old: frozenset[int], objects: set[int]) -> bool:
    """Whether a path made what the place belongs to: a container, an object, or the variables of a function it called;
    ``old``, ``objects``: containers and everything else that was there before."""
    owner = id(place.owner)
    if place.kind == "content":
        before = owner in old or owner in objects or owner in session.objects.externals
        return not before and not held.is_held(session, place.owner)
    return owner not in objects and (owner in session.objects.created or is_a(place.owner, CellType))


__all__ = ["Merged", "is_new"]
