"""Tracing ``cond`` and ``switch``: every path into its own Block, then one join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

import torch

from runtime.ir import UNDEF, Operand, Type, Variable
from runtime.tracer import aliases, carrying, copies, differing, joined_views, joining, late, stale_views, structure
from runtime.tracer.branches import Names, Path, PathEnds, all_names, include_new, trace_path
from runtime.tracer.journal import Place
from runtime.tracer.notes import noted
from runtime.tracer.older import older
from runtime.tracer.pools import inherit
from runtime.tracer.scalars import Staged
from runtime.tracer.session import Session
from runtime.tracer.storage_table import Storage, mark_uncertain
from runtime.tracer.tensor_pairs import tensor_pairs
from runtime.tracer.twins import JoinFlags

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
    return _stage(session, "cond", pred, (if_true, if_false), names)


def switch(session: Session, index: Staged, branches: Sequence[Callable[[], Any]], names: Names,
           of: structure.Choice | None = None) -> Any:  # fmt: skip
    """Stage a choice among ``branches`` by position; returns the joined result.

    ``of``: the choice whose options the branches work on, which is the result where each gives back its option.
    """
    return _stage(session, "switch", index, tuple(branches), names, of)


def _stage(session: Session, name: str, pred: Staged, runs: tuple[Callable[[], Any], ...], names: Names,
           of: structure.Choice | None = None) -> Any:  # fmt: skip
    location = session.location()
    by_path: list[dict[int, Any]] = []
    before = dict(session.held_in_lists)
    result, pairs, flags, old = _joined(session, name, pred, runs, names, location, of, by_path)
    session.held_in_lists.update(before)
    copies.inherit_held(session, pairs, by_path)
    copies.share(session, pairs, location, flags, old)
    return result


def _joined(session: Session, name: str, pred: Staged, runs: tuple[Callable[[], Any], ...], names: Names,
            location: Any, of: structure.Choice | None, by_path: list[dict[int, Any]]
            ) -> tuple[Any, list[copies.Pair], JoinFlags, frozenset[int]]:  # fmt: skip
    """The joined result, the containers that were built anew, the flags for them, and which containers are older.

    Nothing here holds the originals afterwards. ``by_path`` is given what lists that grow hold at the end of each path,
    and after the join.
    """
    held_before = dict(session.held_in_lists)
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
            by_path.append(session.held_in_lists)
    session.held_in_lists = {}  # what the join itself stores changes nothing for them
    include_new(entry, paths)
    alive = [path for path in paths if not path.ended]
    session.older = old
    join = Join(session, paths, entry, old)
    places: dict[Place, None] = {place: None for path in alive for place in path.places if not names.holds(place)}
    for position in range(len(entry_names)):
        join.add([path.names[position] for path in paths], hint=names.names[position])
    holders: dict[int, differing.Holder] = {}
    for place in list(places):
        before = place.get()
        made = _is_new(session, place, old, objects) and sum(place in path.places for path in paths) == 1
        if made and not _outside(session, entry, before):
            before = _NOWHERE
        session.mixed_lists = place.kind == "content"
        join.add([path.places.get(place, before) for path in paths], hint=place.name)
        if made and isinstance(join.items[-1][1], structure.Options):
            del join.items[-1]
            join.add([path.places.get(place, _NOWHERE) for path in paths], hint=place.name)
        if place.kind == "content" and isinstance(join.items[-1][1], structure.Options):
            number = differing.option_of(session, of, place, runs, paths)
            if number is not None:
                del join.items[-1]
                values = [path.places.get(place, before) if path is paths[number] else _NOWHERE for path in paths]
                join.add(values, hint=place.name)
            elif differing.holder(session, place, runs, paths, holders) is not None:
                del join.items[-1], places[place]
    for held in holders.values():
        values = []
        for path in paths:
            with path.inside(session):
                values.append(held.value(path))
        if held.place in places:
            position = len(entry_names) + list(places).index(held.place)
            del join.items[position], places[held.place]
        places[held.place] = None
        join.add(values)
        differing.require_few(session, join.items[-1][1], location)
    for place, (_, joined, _) in zip(places, join.items[len(entry_names) :]):
        if place.kind == "content" and isinstance(joined, structure.Options):
            raise session.error(
                f"{place.describe()} is changed in a branch, and what it holds then differs in kind between the paths",
                hint="Give every path the same keys and kinds of items, or make a new one on each path.",
                code="D2S254",
                location=location,
            )
    session.mixed_lists = False
    join.add([path.result for path in paths], of=of)
    storages = join.changed_storages()
    outputs = join.emit(name, pred, storages, location)
    session.older = frozenset()
    if not alive:
        raise PathEnds()
    values = join.values(outputs)
    by_path.append(session.held_in_lists)
    session.held_in_lists = {}
    names.set(tuple(values[: len(entry_names)]))
    for place, value in zip(places, values[len(entry_names) :]):
        session.journal.write(place, value)
    found = join.copies(values, [place.kind == "content" for place in places], len(entry_names))
    own = {key for held in holders.values() for key in held.copies}
    found = [pair for pair in found if id(pair.original) not in own]
    ends = [late.PathEnd(path.scope, path.ended) for path in paths]
    return values[-1], found, JoinFlags(join.op, session.scope, ends), old


def _is_new(session: Session, place: Place, old: frozenset[int], objects: set[int]) -> bool:
    """Whether a path made what the place belongs to: a container, an object, or the variables of a function it called;
    ``old``, ``objects``: containers and everything else that was there before."""
    owner = id(place.owner)
    if place.kind == "content":
        return owner not in old and owner not in session.externals
    return owner not in objects and (owner in session.created or isinstance(place.owner, CellType))


class Join:
    """Values that paths bring out of a construct, and the Variables that carry what differs."""

    def __init__(
        self, session: Session, paths: Sequence[Path], entry: dict[Storage, Variable], old: frozenset[int]
    ) -> None:
        self.old = old
        self.session = session
        self.paths = paths
        self.entry = entry
        self.items: list[tuple[list[Any], structure.Structure, str]] = []
        self.links: dict[Any, tuple[Storage, Storage, Any, Any, dict[Path, list[Any]]]] = {}
        """Which joined memory is which, by path."""

    def add(self, values: list[Any], hint: str = "", of: structure.Choice | None = None) -> None:
        """One value per path; those of paths that ended, or do not have it, are not looked at."""
        alive = [
            (path, value) for path, value in zip(self.paths, values) if not path.ended and value is not _NOWHERE
        ]
        joined: structure.Structure = structure.Known(alive[0][1] if alive else None)
        if of is not None and alive and all(a is b for a, b, p in zip(values, of.options, self.paths) if not p.ended):
            joined = structure.Known(of)
        elif len(alive) == 1:
            joined = self._settle(*alive[0], joined)
        elif any(not structure.same_known(value, alive[0][1]) for _, value in alive[1:]):
            pictures: list[structure.Structure] = []
            for path, value in alive:
                with path.inside(self.session):
                    mine = structure.known(self.session, value, self.old)
                    pictures.append(mine if mine.picture else structure.structure_of(self.session, value))
            joined = pictures[0]
            for picture in pictures[1:]:
                joined = joining.unify(self.session, joined, picture)
        self.items.append((values, joined, hint))

    def _settle(self, path: Path, value: Any, known: structure.Structure) -> structure.Structure:
        """A value of the only path that goes on: kept as it is unless it was made inside."""
        if id(value) not in self.old and structure.has_traced(value) and not _outside(self.session, self.entry, value):
            with path.inside(self.session):
                return structure.structure_of(self.session, value)
        return known

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
                        absent = value is _NOWHERE
                        yields += [UNDEF] * structure.width(item) if absent else carrying.lower(session, value, item)
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
            value = carrying.lift(session, item, variables)
            if one_object:
                seen[identity] = value
            results.append(value)
        self._note_aliases(results)
        return results

    def copies(self, results: list[Any], contents: list[bool], first: int) -> list[copies.Pair]:
        """Containers that the paths bring out beside those built for them; ``contents``: places from ``first`` on that
        are a container's content, which is a copy anyway."""
        found = []
        for position, ((values, item, _), result) in enumerate(zip(self.items, results)):
            if isinstance(item, structure.Known):
                continue
            content = first <= position < first + len(contents) and contents[position - first]
            for number, (value, path) in enumerate(zip(values, self.paths)):
                if not path.ended:
                    with path.inside(self.session):  # what a path changed is looked at as it was at the path's end
                        pairs = list(copies.pairs(value, result))[1 if content else 0 :]
                    for pair in pairs:
                        pair.path = number
                    found += pairs
        return found

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
    if isinstance(value, structure.Growing):
        return all(map(session.visible, value.variables))
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
