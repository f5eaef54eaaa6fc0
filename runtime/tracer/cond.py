"""Tracing ``cond`` and ``switch``: every path into its own Block, then one join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

import torch

from runtime.ir import UNDEF, Location, Operand, Type, Variable
from runtime.tracer import (
    aliases,
    carrying,
    containers,
    heaps,
    joined_views,
    joining,
    late,
    origins,
    shared_items,
    stale_views,
    structure,
)
from runtime.tracer.branches import Names, Path, PathEnds, all_names, include_new, is_alone, trace_path
from runtime.tracer.journal import Place
from runtime.tracer.notes import noted
from runtime.tracer.older import older
from runtime.tracer.pools import inherit
from runtime.tracer.scalars import Staged
from runtime.tracer.session import Session
from runtime.tracer.storage_table import Storage, mark_uncertain
from runtime.tracer.tensor_pairs import tensor_pairs

_NOWHERE = object()
"""What a place holds on a path that does not have it: its owner was made on another path."""


class NoNames:
    """No local variables: for conditional expressions."""

    names: tuple[str, ...] = ()

    def get(self) -> tuple[Any, ...]:
        """Nothing."""
        return ()

    def set(self, values: tuple[Any, ...]) -> None:
        """Nothing."""

    def holds(self, place: Place) -> bool:
        """Never."""
        return False


def truth(session: Session, value: Any) -> Any:
    """``bool(value)`` as a staged bool: PyTorch's rules for tensors, Python's for numbers and strings."""
    if isinstance(value, torch.Tensor):
        fake = session.fake(value)
        if fake.dim() > 0 and all(type(size) is int for size in fake.shape) and fake.numel() != 1:
            raise RuntimeError(
                f"Boolean value of Tensor with {'no values' if fake.numel() == 0 else 'more than one value'} "
                "is ambiguous"
            )
        return session.from_tensor("truth", value, kind="bool")
    if isinstance(value, Staged) and value.kind != "bool":
        return session.scalar("bool", value)
    return value


def cond(session: Session, pred: Staged, if_true: Callable[[], Any], if_false: Callable[[], Any], names: Names) -> Any:
    """Stage ``if pred``: runs both paths, leaves names, Python state and memory joined; returns the joined result."""
    try:
        return _stage(session, "cond", pred, (if_true, if_false), names)
    finally:
        session.origins.forget_unused()


def switch(session: Session, index: Staged, branches: Sequence[Callable[[], Any]], names: Names,
           of: structure.Choice | None = None) -> Any:  # fmt: skip
    """Stage a choice among ``branches`` by position; returns the joined result.

    ``of``: the choice whose options the branches work on, which is the result where each gives back its option.
    """
    try:
        return _stage(session, "switch", index, tuple(branches), names, of)
    finally:
        session.origins.forget_unused()


def _stage(session: Session, name: str, pred: Staged, runs: tuple[Callable[[], Any], ...], names: Names,
           of: structure.Choice | None = None) -> Any:  # fmt: skip
    location = session.location()
    held_before = dict(session.held_in_lists)
    held_by_path: list[dict[int, Location | None]] = []
    names = all_names(session, names)
    entry = session.storages.snapshot()
    entry_names = names.get()
    objects = set(session.created)
    old = older(session, runs, entry_names, objects)
    paths: list[Path] = []
    with noted(session, lambda: (*entry_names, *(value for path in paths for value in path.held()))):
        for run in runs:
            session.held_in_lists = dict(held_before)
            paths.append(trace_path(session, name, names, run))
            held_by_path.append(session.held_in_lists)
    only = [is_alone(session, position, entry_names, paths) for position in range(len(entry_names))]
    alone = [value if flag else None for value, flag in zip(entry_names, only)]
    session.held_in_lists = {key: value for held in (held_before, *held_by_path) for key, value in held.items()}
    include_new(entry, paths)
    alive = [path for path in paths if not path.ended]
    merged = Merged(session, paths, alone, old, objects, of)
    join = Join(session, paths, entry, merged.context())
    places: dict[Place, None] = {
        place: None for path in alive for place in path.places if not names.holds(place) and merged.leaves(place)
    }
    for position in range(len(entry_names)):
        join.add([path.names[position] for path in paths], hint=names.names[position])
    for place in places:
        before = _before(place)
        made = _is_new(session, place, old, objects) and sum(place in path.places for path in paths) == 1
        if made and not _outside(session, entry, before):
            before = _NOWHERE
        content = place.kind == "content"
        ends = [path.contents if content else path.places for path in paths]
        join.add([end.get(place, before) for end in ends], place.name, mixed_lists=content)
        if made and isinstance(join.items[-1][1], structure.Options):
            del join.items[-1]
            join.add([end.get(place, _NOWHERE) for end in ends], place.name, mixed_lists=content)
    join.items += merged.contents
    join.add([path.result for path in paths], of=of)
    storages = join.changed_storages()
    outputs = join.emit(name, pred, storages, location)
    if not alive:
        raise PathEnds()
    values = join.values(outputs)
    names.set(tuple(values[: len(entry_names)]))
    for place, value in zip((*places, *merged.places), values[len(entry_names) :]):
        if place.kind == "content":
            containers.require_few(session, place.owner, value, location)
            containers.put(session, place.owner, value)
        else:
            session.journal.write(place, value)
    for place, held in merged.unreadable(paths):
        place.set(held)  # that a read of it is an error, if there is one
    return values[-1]


def _before(place: Place) -> Any:
    return containers.content(place.owner) if place.kind == "content" else place.get()


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
        self.made: dict[int, structure.Made] = {}
        self.stand_ins: dict[Any, Any] = {}
        self.contents: list[tuple[list[Any], structure.Structure, str]] = []
        """For each merged container, what the paths leave in it, as an item of a Join."""
        self.places: list[Place] = []
        """Those contents' places."""
        found: dict[Any, dict[int, Any]] = {}
        for number, path in enumerate(paths):
            if path.ended:
                continue
            with path.inside(session):
                leaving = self._leaving(path)
                self._left |= self._unreadable(path, leaving)
                for fresh in leaving.containers.values():
                    place = Place("content", fresh.value)
                    if place not in path.places:
                        path.places[place] = place.get()
                    if not fresh.fixed:
                        key = (containers.kind_of(fresh.value), frozenset(fresh.positions))
                        found.setdefault(key, {})[number] = fresh.value
                for position, value in enumerate(path.names):
                    if value is alone[position] and containers.is_container(value) and not self._is_new(value):
                        if self._is_only(value, position, paths) and id(value) not in session.hidden:
                            key = (containers.kind_of(value), frozenset({("name", position)}))
                            found.setdefault(key, {})[number] = value
                            path.places.setdefault(Place("content", value), Place("content", value).get())
                path.contents = {
                    place: containers.content(place.owner, None if of is None else (of, number))
                    for place in path.places
                    if place.kind == "content"
                }
        self._merge(paths, {key: members for key, members in found.items() if len(members) > 1})

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
                    for key, item in containers.items_of(place.owner):
                        leaving.walk(item, (*where, key))
                else:
                    leaving.walk(value, where, place.kind == "attribute" and isinstance(place.owner, CellType))
        return leaving

    def unreadable(self, paths: Sequence[Path]) -> list[tuple[Place, Any]]:
        """The places that no path brings out, with what they hold."""
        return [(place, held) for path in paths for place, held in path.places.items() if id(place.owner) in self._left]

    def _unreadable(self, path: Path, leaving: containers.Leaving) -> set[int]:
        """The containers that the path made and that nothing which leaves it leads to, by identity, if what they hold
        is not to be read where the path ends: a loop or branch inside it made them, and its own notes know them."""
        readable = {storage: value for storage, value in path.storages.items() if self._session.visible(value)}
        return {
            id(place.owner)
            for place in path.places
            if place.kind == "content"
            and self._belongs(place)
            and id(place.owner) not in leaving.reached
            and not _outside(self._session, readable, place.get())
        }

    def _is_new(self, value: Any) -> bool:
        key = id(value)
        session = self._session
        if key in self._old or key in session.externals or key in session.hidden:
            return False
        return not heaps.is_heap(session, value)

    def _belongs(self, place: Place) -> bool:
        """Whether a place is part of something that the path made."""
        return _is_new(self._session, place, self._old, self._objects)

    def leaves(self, place: Place) -> bool:
        """Whether a place that paths stored to is seen after them, and joined on its own."""
        if id(place.owner) in self._left:
            return False
        return id(place.owner) not in self._session.hidden and id(place.owner) not in self.made

    def _merge(self, paths: Sequence[Path], groups: dict[Any, dict[int, Any]]) -> None:
        """Make each group one, as far as its contents have one structure: a group that has not stays apart, and then
        the contents that refer to its members differ in another way."""
        session = self._session
        left = [members for members in groups.values() if any(map(self._is_new, members.values()))]
        while True:
            self.made = {
                id(value): structure.Made(number, type(value))
                for number, members in enumerate(left)
                for value in members.values()
            }
            joined = [self._joined_content(paths, members) for members in left]
            one = [not isinstance(s, structure.Options) and not (isinstance(s, structure.Known) and s.value)
                   for s in joined]  # fmt: skip
            if all(one):
                break
            left = [members for members, kept in zip(left, one) if kept]
        for number, (members, content) in enumerate(zip(left, joined)):
            first = next(value for value in members.values() if self._is_new(value))
            self.stand_ins[number] = first
            shared_items.note_same(session, members.values(), first)
            self.contents.append((self._contents_of(paths, members), content, ""))
            self.places.append(Place("content", first))

    def context(self) -> structure.JoinContext:
        """What joins of what the paths leave know of these containers."""
        return structure.JoinContext(self.made, self.stand_ins, arrays_hold_containers=False)

    def _contents_of(self, paths: Sequence[Path], members: dict[int, Any]) -> list[Any]:
        return [path.contents[Place("content", members[n])] if n in members else _NOWHERE
                for n, path in enumerate(paths)]  # fmt: skip

    def _joined_content(self, paths: Sequence[Path], members: dict[int, Any]) -> structure.Structure:
        """The structure that carries what any of a group holds at the end of its path."""
        context = self.context()
        pictures: list[structure.Structure] = []
        for number, value in members.items():
            with paths[number].inside(self._session):
                content = paths[number].contents[Place("content", value)]
                picture = structure.structure_of(self._session, content, context)
                pictures.append(joining.carried(self._session, picture, context))
        joined = pictures[0]
        for picture in pictures[1:]:
            joined = joining.unify(self._session, joined, picture, context)
        return joined


def _is_new(session: Session, place: Place, old: frozenset[int], objects: set[int]) -> bool:
    """Whether a path made what the place belongs to: a container, an object, or the variables of a function it called;
    ``old``, ``objects``: containers and everything else that was there before."""
    owner = id(place.owner)
    if place.kind == "content":
        return owner not in old and owner not in session.externals and not heaps.is_heap(session, place.owner)
    return owner not in objects and (owner in session.created or isinstance(place.owner, CellType))


class Join:
    """Values that paths bring out of a construct, and the Variables that carry what differs."""

    def __init__(
        self, session: Session, paths: Sequence[Path], entry: dict[Storage, Variable], context: structure.JoinContext
    ) -> None:
        self.session = session
        self.context = context
        self.paths = paths
        self.entry = entry
        self.items: list[tuple[list[Any], structure.Structure, str]] = []
        self.links: dict[Any, tuple[Storage, Storage, Any, Any, dict[Path, list[Any]]]] = {}
        """Which joined memory is which, by path."""

    def add(
        self, values: list[Any], hint: str = "", of: structure.Choice | None = None, mixed_lists: bool = False
    ) -> None:
        """One value per path; those of paths that ended, or do not have it, are not looked at."""
        session, context = self.session, self.context.mixing(mixed_lists)
        alive = [
            (path, value) for path, value in zip(self.paths, values) if not path.ended and value is not _NOWHERE
        ]

        def picture(path: Path, value: Any) -> structure.Structure:
            with path.inside(session):
                return structure.structure_of(session, value, context)

        joined: structure.Structure = structure.Known(alive[0][1] if alive else None)
        if of is not None and alive and all(a is b for a, b, p in zip(values, of.options, self.paths) if not p.ended):
            joined = structure.Known(of)
        elif len(alive) == 1:
            path, value = alive[0]
            if structure.has_traced(value) and not _outside(session, self.entry, value):
                with path.inside(session):
                    joined = joining.carried(session, picture(path, value), context)
        elif any(not structure.same_known(value, alive[0][1]) for _, value in alive[1:]):
            pictures = [picture(path, value) for path, value in alive]
            joined = pictures[0]
            for one in pictures[1:]:
                joined = joining.require_few(session, joining.unify(session, joined, one, context))
        self.items.append((values, joined, hint))

    def changed_storages(self) -> list[Storage]:
        """Memory that existed before and that some path wrote; what a path gave up may not be read after it either."""
        changed = []
        for storage, before in self.entry.items():
            values = [(path, path.storages.get(storage, before)) for path in self.paths if not path.ended]
            hidden = [value for path, value in values if not path.scope.sees(value)]
            if hidden:
                storage.value = hidden[0]
            elif any(value is not before for _, value in values):
                changed.append(storage)
        return changed

    def emit(self, name: str, pred: Staged, storages: list[Storage], location: Any) -> list[Variable]:
        """Close the paths' Blocks with yields, record the Operator, and set the written storages."""
        session = self.session
        types: list[Type] = []
        hints: list[str] = []
        for _, item, hint in self.items:
            mine = carrying.types(session, item)
            types += mine
            hints += [hint] * len(mine)
        for storage in storages:
            types.append(storage.value.type)
            hints.append(storage.label)
        for index, path in enumerate(self.paths):
            yields: list[Operand] = []
            if path.ended:
                yields = [UNDEF] * len(types)
            else:
                with path.inside(session):
                    for values, item, _ in self.items:
                        value = values[index]
                        if value is _NOWHERE:
                            yields += carrying.lower_nothing(session, item, self.context)
                        else:
                            yields += carrying.lower(session, value, item, self.context)
                    yields += [path.storages.get(storage, self.entry[storage]) for storage in storages]
            path.scope.block.yields.extend(yields)
        outputs = session.emit(
            name,
            [session.operand(pred)],
            None,
            types,
            hints=hints,
            blocks=[path.scope.block for path in self.paths],
            location=location,
        )
        self.op = session.scope.block.ops[-1]
        session.looks.path_ends[self.op] = tuple(late.PathEnd(path.scope, path.ended) for path in self.paths)
        for storage, var in zip(storages, outputs[len(outputs) - len(storages) :]):
            storage.value = var
            stale_views.note_join(session, storage, self.op, self.entry[storage], self.paths)
        return list(outputs[: len(outputs) - len(storages)])

    def values(self, outputs: list[Variable]) -> list[Any]:
        """The joined values; tensors that may be the same memory as others are marked so."""
        session = self.session
        variables = iter(outputs)
        results = []
        seen: dict[tuple[int, ...], Any] = {}
        for values, item, _ in self.items:
            identity = tuple(id(value) for value, path in zip(values, self.paths) if not path.ended)
            one_object = isinstance(item, (structure.Tensor, structure.Sequence, structure.Fields, structure.Array))
            if one_object and identity in seen:
                for _ in range(structure.width(item)):
                    next(variables)
                results.append(seen[identity])
                continue
            value = carrying.lift(session, item, variables, self.context)
            if one_object:
                seen[identity] = value
            results.append(value)
        rows = [(self._present(values), item, result) for (values, item, _), result in zip(self.items, results)]
        origins.note_join(session, self.op, self.paths, rows)
        self._note_aliases(results)
        return results

    def _present(self, values: list[Any]) -> list[Any]:
        return [None if value is _NOWHERE else value for value in values]

    def _note_aliases(self, results: list[Any]) -> None:
        """Tensors that are, on some path, memory from outside or each other's."""
        session = self.session
        joined: list[Storage] = []
        met: list[tuple[Path, list[tuple[torch.Tensor, torch.Tensor]]]] = [(path, []) for path in self.paths]
        for path, tensors in met:
            if path.ended:
                continue
            views: list[tuple[int, aliases.Root]] = []
            met_by: dict[Storage, list[tuple[Storage, bool]]] = {}
            for (values, item, _), result in zip(self.items, results):
                if isinstance(item, structure.Known):
                    continue
                with path.inside(session):
                    pairs = tensor_pairs(values[self.paths.index(path)], result, item)
                tensors += pairs
                for inside, outside in pairs:
                    mine = session.info(outside).storage
                    if session.info(inside).storage is mine:
                        continue
                    if mine not in joined:
                        joined.append(mine)
                    found, reached = aliases.few_roots(session.info(inside), self.entry)
                    for storage in (*(root.storage for root in found), *reached):
                        if not aliases.is_outside(storage, self.entry):
                            inherit(mine, storage)
                        self._mark_many(mine, storage, bool(reached), met_by.setdefault(storage, []))
                    views += [(joined.index(mine), root) for root in found]
            self._note_path(path, joined, views)
        for dependent, base, steps, pending, by_path in self.links.values():
            always = all(path.ended or () in by_path.get(path, []) for path in self.paths)
            cases = {path: by_path.get(path, False) for path in self.paths}
            flags = () if always else (self._output(late.BOOL, cases),)
            aliases.add(dependent, base, steps, flags, pending)
        joined_views.note_join(session, self.op, met)

    def _mark_many(self, mine: Storage, storage: Storage, many: bool, met_by: list[tuple[Storage, bool]]) -> None:
        """A tensor may be ``storage``; ``many``: in too many ways to say when. Then it may be any other that may be."""
        location = self.session.location()
        if many and aliases.is_outside(storage, self.entry):
            mark_uncertain(mine, storage, "it may be one of many others", location)
        for other, of_many in met_by:
            if many or of_many:
                mark_uncertain(mine, other, "it may be one of many others", location)
        met_by.append((mine, many))

    def _note_path(self, path: Path, joined: list[Storage], views: list[tuple[int, aliases.Root]]) -> None:
        by_root: dict[Storage, list[tuple[int, aliases.Root]]] = {}
        for number, root in views:
            by_root.setdefault(root.storage, []).append((number, root))
        for storage, members in by_root.items():
            if aliases.is_outside(storage, self.entry):
                for number, root in members:
                    self._link(path, joined[number], storage, root.steps, root.flags, root.pending)
                continue
            links, unknown = aliases.links(members)
            for link in links:
                self._link(path, joined[link.one], joined[link.other], link.steps, link.flags, link.pending)
            for a, b in unknown:
                mark_uncertain(
                    joined[a], joined[b], "two variables are views of one tensor on one path", self.session.location()
                )

    def _link(self, path: Path, dependent: Storage, base: Storage, steps: Any, flags: Any, pending: Any) -> None:
        """``dependent`` is ``steps`` of ``base`` on this path, where ``flags`` hold."""
        if dependent is base:
            return
        lates = {late.var: late for late in pending}
        new: dict[Variable, Variable] = {}
        passed: list[late.Late] = []
        for var in aliases.step_variables(steps):
            if not self.session.visible(var) and var not in new:
                output = self._output(var.type, {path: lates.get(var, var)})
                passed.append(output)
                new[var] = output.var
        steps = aliases.with_variables(steps, new)
        entry = self.links.setdefault(
            (id(dependent), id(base), aliases.key(steps)), (dependent, base, steps, (*passed,), {})
        )
        entry[4].setdefault(path, []).append(flags)

    def _output(self, type: Type, by_path: dict[Path, Any]) -> late.JoinOutput:
        paths = [(late.PathEnd(path.scope, path.ended), by_path.get(path, UNDEF)) for path in self.paths]
        return late.JoinOutput(self.op, self.session.scope, type, paths)


def _outside(session: Session, entry: dict[Storage, Variable], value: Any) -> bool:
    """Whether every tensor and number inside a value exists outside the paths."""
    if isinstance(value, torch.Tensor):
        info = session.info(value)
        return info.storage in entry and all(
            session.visible(var) for step in info.steps for var in _step_variables(step)
        )
    if isinstance(value, Staged):
        return session.visible(value.var)
    if isinstance(value, structure.Row):
        return value.visible(session)
    if isinstance(value, structure.Growing):
        return all(map(session.visible, value.arrays))
    if isinstance(value, structure.Choice):
        return session.visible(value.selector.var) and all(_outside(session, entry, option) for option in value.options)
    if isinstance(value, (list, tuple)):
        return all(_outside(session, entry, item) for item in value)
    fields = structure.field_items(value)
    return fields is None or all(_outside(session, entry, item) for item in fields[1])


def _step_variables(step: Any) -> list[Variable]:
    from runtime.ir import leaves

    return [*leaves(step.args), *leaves(dict(step.kwargs))]


__all__ = ["Join", "NoNames", "cond", "switch", "truth"]
