"""Tracing ``while_loop``: the body is traced until what it carries round is stable.

The condition is computed before the loop and at the end of each iteration, in eager's order, and carried as a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.ir import UNDEF, Block, Location, Operand, ScalarType, Type, Variable
from runtime.tracer import (
    carrying,
    containers,
    heaps,
    histories,
    joining,
    loop_objects,
    origins,
    stale_views,
    structure,
)
from runtime.tracer.branches import Names, Path, all_names, include_new, is_alone, trace_path
from runtime.tracer.cond import truth
from runtime.tracer.describing import describe
from runtime.tracer.joined_views import LoopViews
from runtime.tracer.journal import Place
from runtime.tracer.late import PathEnd
from runtime.tracer.loop_aliases import LoopAliases, Pairs
from runtime.tracer.loop_objects import Cell, LoopObjects
from runtime.tracer.loop_sizes import check_sizes, with_sizes
from runtime.tracer.older import older
from runtime.tracer.scalars import Staged
from runtime.tracer.session import Scope, Session
from runtime.tracer.storage_table import Storage
from runtime.tracer.tensor_pairs import tensor_pairs

_TRIES = 12


@dataclass(eq=False)
class _Slot:
    """One thing the loop may carry: a local name or a place in Python state."""

    label: str
    init: Any
    carried: structure.Structure
    place: Place | None = None
    cell: Cell | None = None
    """What a stand-in holds is carried as a tuple."""

    def describe(self) -> str:
        """How the user would call it."""
        if self.cell is not None:
            return f"what a {self.cell.cls.__name__} made in the loop holds"
        return self.place.describe() if self.place is not None else f"'{self.label}'"


def while_loop(
    session: Session,
    first: Staged,
    test: Callable[[], Any],
    body: Callable[[], None],
    names: Names,
    options: dict[str, Any] | None = None,
) -> None:
    """Stage a loop whose condition was ``first`` before the first iteration; leaves names and state as after it."""
    names = all_names(session, names)
    location = session.location()
    invariants = (options or {}).get("shape_invariants") or {}
    for name in invariants.keys() - set(names.names):
        raise session.error(
            f"shape_invariants names '{name}', which is no variable that this loop carries",
            hint=f"Its variables are: {', '.join(name for name in names.names if name)}.",
            code="D2S282",
        )
    attempt = _settle(session, test, body, names, invariants, location)
    carried = [(slot.label, slot.carried) for slot in attempt.slots if slot.place is None]
    check_sizes(session, carried, invariants, location)
    attempt.finish(first, location, options or {})
    del attempt
    session.origins.forget_unused()


def _settle(
    session: Session, test: Callable[[], Any], body: Callable[[], None], names: Names, invariants: dict[str, Any],
    location: Location | None,
) -> _Attempt:  # fmt: skip
    """Trace the body until what it was taken to carry is what an iteration leaves."""
    entered = names.get()
    alone = {position for position in range(len(entered)) if is_alone(session, position, entered)}
    del entered
    slots = _first_slots(session, names, invariants)
    written: list[Storage] = []
    repeat: set[Place] | None = None
    shares: LoopAliases | None = None
    views: LoopViews | None = None
    for number in range(_TRIES):
        attempt = _Attempt(session, slots, written, test, body, names, shares, views, alone)
        stable, unknown = attempt.stable(repeat or set(), number >= _TRIES // 3)
        # An object made by the body is another one each time: what one of two equal attempts stored to is such.
        if stable and (not unknown or repeat is not None):
            return attempt
        if _moved_lists(session, attempt.slots):
            slots, written, repeat, shares, views = _first_slots(session, names, invariants), [], None, None, None
            continue
        repeat = unknown if stable else None
        slots, written, changing = attempt.slots, attempt.written, attempt.changed
        shares, views = attempt.aliases, attempt.views
    raise _never_fixed(session, changing, location)


def _first_slots(session: Session, names: Names, invariants: dict[str, Any]) -> list[_Slot]:
    """One for each variable, with what it holds before the loop."""
    return [
        _Slot(name, value, with_sizes(session, name, value, invariants))
        for name, value in zip(names.names, names.get())
    ]


def _moved_lists(session: Session, slots: list[_Slot]) -> bool:
    """Make ready what a list that comes to grow in the loop holds; whether that is new, so that the loop begins anew.

    The list holds the lists inside by reference, which they must be before the body is traced, or copies of them, and
    then the body must not change them.
    """
    kinds = list, structure.Choice
    growing = [slot for slot in slots if _holds_arrays(slot.carried) and isinstance(slot.init, kinds)]
    if session.known.by_reference:
        return heaps.settle(session, [slot.init for slot in growing])
    for slot in growing:
        if isinstance(slot.carried, structure.Array) and structure.growing(slot.init) is None:
            for item in slot.init:
                slot.carried.pool.put(session, item)
    return False


def _holds_arrays(s: structure.Structure) -> bool:
    if isinstance(s, structure.Options):
        return any(map(_holds_arrays, s.options))
    if isinstance(s, (structure.Sequence, structure.Fields)):
        return any(map(_holds_arrays, s.items))
    return isinstance(s, structure.Array)


def _never_fixed(session: Session, changing: list[_Slot], location: Location | None) -> Exception:
    """The located error that says which variable never gets a structure that stays, and what it was last."""
    named = [slot for slot in changing if slot.label or slot.place is not None]
    found = named or [slot for slot in changing if slot.cell is not None]
    names = [slot.describe() for slot in found]
    lasts = [f"{name} was {describe(slot.carried)}" for name, slot in zip(names, found)]
    return session.error(
        f"{' and '.join(names) or 'what this loop changes'} never reach{'es' if len(names) == 1 else ''} a fixed "
        f"structure: after {_TRIES} iterations {', '.join(lasts) or 'it still changes'}",
        hint="Give it its final kind before the loop: the same number of items and dimensions in every iteration, or a "
        "list that grows by append.",
        code="D2S250",
        location=location,
    )


def _store(session: Session, place: Place | None, value: Any) -> None:
    """Let a place hold what a slot does."""
    if place is not None and place.kind == "content":
        containers.put(session, place.owner, value)
    elif place is not None:
        session.journal.write(place, value)


class _Attempt:
    """One trace of the body under a guess of what is carried."""

    def __init__(
        self,
        session: Session,
        slots: list[_Slot],
        written: list[Storage],
        test: Callable[[], Any],
        body: Callable[[], None],
        names: Names,
        before: LoopAliases | None,
        views: LoopViews | None,
        alone: set[int],
    ) -> None:
        self.session = session
        self.aliases = LoopAliases(before)
        self.views = LoopViews(views)
        self.slots = slots
        self.written = list(written)
        self.names = names
        self.entry = session.storages.snapshot()
        self.changed: list[_Slot] = []
        """Those of the widened slots that the guess did not hold for."""
        self.args: list[Variable] = []
        self.inner: list[Any] = []
        self.writes: list[stale_views.LoopWrites] = []
        self.count = len(names.names)
        self.held = frozenset(session.held_in_lists)
        """What lists that grow held copies of when the body began, by identity."""
        self.no_item = [storage for storage in self.entry if not storage.pools]
        """The memory from before that was in no list that grows when the body began."""
        self.alone = alone
        """The names, by number, that are all that refers to the list or dict with which the loop begins."""
        self.firsts = {position: containers.content(slots[position].init) for position in alone}
        """What these hold then."""
        self.made: dict[int, structure.Made] = {}
        """What the iteration made and leaves, by identity."""
        self.objects = set(session.created)
        """Objects that no iteration of this attempt made, by identity."""
        self.old = older(session, (body, test), names.get(), self.objects)

        def run() -> Any:
            body()
            flag = test()
            if session.known.by_reference:
                self._settle_lists()
            return truth(session, flag) if isinstance(flag, (torch.Tensor, Staged)) else flag

        session.touched.append(self.aliases.touched)
        self.loop = origins.begin_loop(session, self.objects | self.old)
        try:
            with session.origins.inside(self.loop):
                self.path: Path = trace_path(session, "while_loop", names, run, self._enter)
        finally:
            session.touched.pop()
        include_new(self.entry, [self.path])

    def _settle_lists(self) -> None:
        """What the iteration leaves is handed on: lists inside of lists that it changed move to where they may be."""
        session = self.session
        entered = set(map(id, self.inner))
        changed = [value for value in self.names.get() if id(value) not in entered]
        changed += [place.owner if place.kind == "content" else place.get() for place in session.journal.frames[-1]]
        heaps.settle(session, changed)

    def _enter(self, scope: Scope) -> None:
        """Give every carried thing a Block argument and its stand-in inside the body."""
        session = self.session
        for slot in self.slots:
            self.args += [session.new_variable(type_, slot.label) for type_ in carrying.types(session, slot.carried)]
        self.inner += self._lifted(iter(self.args))
        for storage in self.written:
            var = session.new_variable(storage.value.type, storage.label)
            self.args.append(var)
            before, storage.value = storage.value, var
            self.writes.append(stale_views.LoopWrites(storage, before, scope))
        firsts = ((slot.init, slot.carried, value) for slot, value in zip(self.slots, self.inner))
        origins.enter_loop(session, self.loop, scope, firsts)
        scope.block.args.extend(self.args)
        self.names.set(tuple(self.inner[: self.count]))
        for slot, value in zip(self.slots[self.count :], self.inner[self.count :]):
            _store(session, slot.place, value)
        pairs = list(self._pairs([slot.init for slot in self.slots], self.inner))
        stand_ins = list(self._pairs(self.inner, self.inner))
        self.aliases.enter(session, scope, pairs, stand_ins, session.location())
        self.views.enter(session, scope, pairs, stand_ins, self.entry)

    def _lifted(self, variables: Iterator[Variable]) -> list[Any]:
        """The values of all slots, carried by the next Variables."""
        session = self.session
        stand_ins: dict[Hashable, Any] = {
            slot.cell: loop_objects.stand_in(session, slot.cell) for slot in self.slots if slot.cell
        }
        context = structure.JoinContext(stand_ins=stand_ins)
        values = [carrying.lift(session, slot.carried, variables, context) for slot in self.slots]
        for slot, value in zip(self.slots, values):
            if slot.cell is not None:
                loop_objects.fill(session, stand_ins[slot.cell], slot.cell, value)
        return values

    def _pairs(self, values: Sequence[Any], stand_ins: Sequence[Any]) -> Pairs:
        """The tensors of the state, by number, beside those that stand for them."""
        for index, (slot, value, stand_in) in enumerate(zip(self.slots, values, stand_ins)):
            if isinstance(slot.carried, structure.Known):
                continue
            order: dict[int, int] = {}
            for _, tensor in tensor_pairs(stand_in, stand_in, slot.carried):
                order.setdefault(id(tensor), len(order))
            for tensor, other in tensor_pairs(value, stand_in, slot.carried):
                yield (index, order[id(other)]), tensor, other

    def stable(self, repeated: set[Place], late: bool) -> tuple[bool, set[Place]]:
        """Whether the guess holds, and places stored to that are no slots; widens ``slots`` and ``written`` if not.

        ``late``: what differs in length every time is taken for a list that grows.

        Those ``repeated`` from an equal attempt belong to objects older than the loop: they become slots.
        """
        session, path = self.session, self.path
        if path.ended:
            return True, set()
        unknown: set[Place] = set()
        repeated = repeated | {place for place in path.places if heaps.is_heap(session, place.owner)}
        entry_places = {place: _held(place) for place in path.places}
        known_places = {slot.place for slot in self.slots if slot.place is not None}
        outs, contents = self._outs([*known_places, *(repeated - known_places)])
        later = session.held_in_lists.keys() - self.held
        stable = self.old.isdisjoint(later) and self.objects.isdisjoint(later)  # the next iteration begins with them
        stable = stable and not any(storage.pools for storage in self.no_item)
        next_slots: list[_Slot] = []
        starts = [structure.structure_of(session, slot.init, structure.PLAIN) for slot in self.slots]
        context = structure.JoinContext(self.made)
        with path.inside(session):
            for slot, start, out in zip(self.slots, starts, outs):
                carried = slot.carried
                if out is None and slot.cell is not None:  # no object of this iteration
                    next_slots.append(slot)
                    continue
                mine = context.mixing(late or (slot.place is not None and slot.place.kind == "content"))
                picture = structure.structure_of(session, out, mine)
                if isinstance(carried, structure.Known):
                    if not structure.same_known(out, carried.value):
                        carried = joining.unify(session, start, picture, mine)
                        if isinstance(carried, structure.Known):
                            carried = joining.carried(session, picture, mine)
                elif not joining.fits(session, picture, carried, mine):
                    carried = joining.unify(session, carried, picture, mine)
                next_slots.append(_Slot(slot.label, slot.init, carried, slot.place, slot.cell))
                if carried is not slot.carried:
                    stable = False
                    self.changed.append(next_slots[-1])
            for place, out in path.places.items():
                before = entry_places[place]
                out = self.contents.get(place, out)
                if place in known_places or structure.same_known(out, before) or _same_items(out, before):
                    continue
                if id(place.owner) in session.hidden:
                    continue
                if place not in repeated:
                    if id(place.owner) not in self.made:
                        unknown.add(place)
                    continue
                mine = context.mixing(late or place.kind == "content")
                first, last = (structure.structure_of(session, value, mine) for value in (before, out))
                carried = joining.unify(session, first, last, mine)
                next_slots.append(_Slot(place.name, before, carried, place))
                stable = False
            for cell in contents:
                if any(slot.cell == cell for slot in self.slots):
                    continue
                carried = joining.carried(session, structure.structure_of(session, contents[cell], context), context)
                init = self.starts.get(cell)
                if init is not None:
                    carried = joining.unify(
                        session, structure.structure_of(session, init, context), carried, context
                    )
                next_slots.append(_Slot("", init, carried, cell=cell))
                stable = False
        for storage in self.entry:
            if storage in self.written:
                continue
            if path.storages.get(storage, self.entry[storage]) is not self.entry[storage]:
                self.written.append(storage)
                stable = False
        with path.inside(session):
            leaving = list(self._pairs(outs, self.inner))
        stable = self.aliases.leave(session, path, self.entry, leaving, session.visible) and stable
        stable = self.views.leave(session, path, leaving) and stable
        changed = {n for n, (old, new) in enumerate(zip(self.slots, next_slots)) if old.carried is not new.carried}
        self.aliases.forget(changed)
        self.views.forget(changed)
        self.slots = next_slots
        self.outs = outs
        return stable, unknown

    def _outs(self, places: Sequence[Place]) -> tuple[list[Any], dict[Cell, tuple[Any, ...]]]:
        """What the slots hold at the end of the iteration, and what the objects do that it made and that leave it."""
        session, path = self.session, self.path
        with path.inside(session):
            self.contents = {place: _held(place) for place in path.places if place.kind == "content"}
        ends = {place: self.contents.get(place, path.places[place]) for place in places if place in path.places}
        for slot, value in zip(self.slots, self.inner):
            if slot.place is not None:
                ends.setdefault(slot.place, value)
        with path.inside(session):
            found = LoopObjects(session, self.objects, self.old)
            self.made = found.find([*enumerate(path.names), *ends.items()])
            self._begin(found.contents)
        values = [
            ends[slot.place] if slot.place is not None else found.contents.get(slot.cell) if slot.cell else None
            for slot in self.slots[self.count :]
        ]
        return [*path.names, *values], found.contents

    def _begin(self, contents: dict[Cell, Any]) -> None:
        """Where an iteration makes a variable's list anew, the one it begins with is the first of them."""
        session = self.session
        self.starts: dict[Cell, Any] = {}
        known = {slot.cell for slot in self.slots}
        for cell, content in contents.items():
            places: list[Any] = list(cell.positions)
            if len(places) != 1 or places[0][1] != () or places[0][0] not in self.alone:
                continue
            first = self.slots[places[0][0]].init
            if not containers.is_container(first) or containers.kind_of(first) != cell.kind:
                continue
            start = self.firsts[places[0][0]]
            context = structure.JoinContext(self.made)
            old, new = (structure.structure_of(session, value, context) for value in (start, content))
            like = cell in known or not isinstance(joining.unify(session, old, new, context), structure.Options)
            if like:
                self.starts[cell] = start
                self.made[id(first)] = structure.Made(cell, cell.cls)

    def finish(self, first: Staged, location: Any, options: dict[str, Any]) -> None:
        """Record the Operator and give names, places and memory their values after the loop."""
        session, path = self.session, self.path
        flag_type = ScalarType("bool")
        inits: list[Operand] = [session.operand(first)]
        types: list[Type] = []
        hints: list[str] = []
        for slot in self.slots:
            inits += self._lowered(slot, slot.init)
            mine = carrying.types(session, slot.carried)
            types += mine
            hints += [slot.label] * len(mine)
        for storage in self.written:
            inits.append(session.require_visible(self.entry[storage]))
            types.append(storage.value.type)
            hints.append(storage.label)
        yields: list[Operand]
        if path.ended:
            yields = [UNDEF] * (1 + len(types))
        else:
            with path.inside(session):
                yields = [
                    session.operand(path.result if isinstance(path.result, (bool, Staged)) else bool(path.result))
                ]
                for slot, out in zip(self.slots, self.outs):
                    yields += self._lowered(slot, out)
                yields += [path.storages.get(storage, self.entry[storage]) for storage in self.written]
        body = path.scope.block
        body.args.insert(0, session.new_variable(flag_type, "", path.scope))
        body.yields.extend(yields)
        test = Block(
            [
                session.new_variable(flag_type, "", path.scope),
                *(session.new_variable(arg.type, arg.hint, path.scope) for arg in self.args),
            ]
        )
        test.yields.append(test.args[0])
        attrs: dict[str, Any] = {
            key: options[key] for key in ("max_iterations", "already", "recompute") if key in options
        }
        outputs = session.emit(
            "while_loop",
            inits,
            None,
            [flag_type, *types],
            hints=["", *hints],
            blocks=[test, body],
            attrs=attrs,
            location=location,
        )
        variables = iter(outputs[1:])
        values = self._lifted(variables)
        for storage, var in zip(self.written, variables):
            storage.value = var
        op = session.scope.block.ops[-1]
        for writes in self.writes:
            writes.finish(session, op, path)
        outs = self.inner if path.ended else self.outs
        rows = zip(outs, (slot.carried for slot in self.slots), self.inner, values)
        origins.leave_loop(session, self.loop, op, path, rows)
        histories.loop_recorded(session, path.scope, op, PathEnd(path.scope, path.ended))
        results = list(self._pairs(values, values))
        self.aliases.finish(session, op, path, results, location)
        self.views.finish(session, op, path, results)
        self.names.set(tuple(values[: self.count]))
        for slot, value in zip(self.slots[self.count :], values[self.count :]):
            _store(session, slot.place, value)

    def _lowered(self, slot: _Slot, value: Any) -> list[Operand]:
        if slot.cell is not None and value is None:  # no object stands there: nothing says that it is read
            return carrying.lower_nothing(self.session, slot.carried, structure.PLAIN)
        return carrying.lower(self.session, value, slot.carried, structure.JoinContext(self.made))


def _held(place: Place) -> Any:
    return containers.content(place.owner) if place.kind == "content" else place.get()


def _same_items(a: Any, b: Any) -> bool:
    """Whether a container's content did not change."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(structure.same_known(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(structure.same_known(a[key], b[key]) for key in a)
    return isinstance(a, frozenset) and isinstance(b, frozenset) and a == b  # one of several is no set


__all__ = ["while_loop"]
