"""Tracing ``while_loop``: the body is traced until what it carries round is stable.

The condition is computed before the loop and at the end of each iteration, in eager's order, and carried as a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import torch

from runtime.ir import UNDEF, Block, Location, Operand, ScalarType, Type, Variable
from runtime.tracer.control import loop_objects
from runtime.tracer.control.branches import Names, Path, all_names, include_new, is_alone, trace_path
from runtime.tracer.control.cond import truth
from runtime.tracer.control.joined_nonwritable_views import LoopViews
from runtime.tracer.control.loop_aliases import LoopAliases
from runtime.tracer.control.loop_objects import Cell, LoopObjects
from runtime.tracer.control.memory_parts import LoopMemory
from runtime.tracer.control.older import older
from runtime.tracer.control.parts import Body, LoopPart, Number
from runtime.tracer.control.slots import TRIES, Slot, first_slots, held, moved_lists, never_fixed, same_items, store
from runtime.tracer.memory.deferred import PathEnd
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.held import RowField, is_held
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import histories
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values import containers, flattening, heaps, origins, structure, tables, unification
from runtime.tracer.values.loop_sizes import check_sizes
from runtime.tracer.values.tensor_pairs import tensor_pairs


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
    tables.settle_objects(session)
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
    slots = first_slots(session, names, invariants)
    parts = _new_parts(session)
    repeat: set[Place] | None = None
    for number in range(TRIES):
        attempt = _Attempt(session, slots, parts, test, body, names, alone, location)
        stable, unknown = attempt.stable(repeat or set(), number >= TRIES // 3)
        # An object made by the body is another one each time: what one of two equal attempts stored to is such.
        found = stable and (not unknown or repeat is not None)
        moved = (not found or session.known.by_reference) and moved_lists(session, attempt.slots)
        if found and not moved:
            return attempt
        if moved:
            slots, repeat, parts = first_slots(session, names, invariants), None, _new_parts(session)
            continue
        repeat = unknown if stable else None
        slots, parts, changing = attempt.slots, [part.again() for part in attempt.parts], attempt.changed
    raise never_fixed(session, changing, location)


PARTS: tuple[Callable[[Session], LoopPart], ...] = (
    LoopMemory, lambda session: LoopAliases(), lambda session: LoopViews()
)  # fmt: skip
"""What takes part in every loop besides values (see ``parts``)."""


def _require_repeatable(session: Session, blocks: Sequence[Block]) -> None:
    """Refuse a loop whose backward runs its body again, where that draws from the process or sets a generator."""
    for op in (op for block in blocks for op in block.walk()):
        if op.name.startswith("host."):
            raise session.error(
                f"a loop with checkpoints calls {op.name.partition('.')[2]}(): backward runs the body again, and would "
                "draw other numbers", code="D2S214", location=op.location,
                hint="Draw before the loop, use torch's random numbers, or leave the option checkpoints out.")


def _new_parts(session: Session) -> list[LoopPart]:
    return [part(session) for part in PARTS]


class _Attempt:
    """One trace of the body under a guess of what is carried."""

    def __init__(
        self,
        session: Session,
        slots: list[Slot],
        parts: list[LoopPart],
        test: Callable[[], Any],
        body: Callable[[], None],
        names: Names,
        alone: set[int],
        location: Location | None,
    ) -> None:
        self.session = session
        self.parts = parts
        self.location = location
        self.slots = slots
        self.names = names
        self.entry = session.storages.snapshot()
        self.changed: list[Slot] = []
        """Those of the widened slots that the guess did not hold for."""
        self.args: list[Variable] = []
        self.inner: list[Any] = []
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

        self.touched: set[Storage] = set()
        session.touched.append(self.touched)
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
        if session.known.in_variables:
            heaps.move_inside(session, [one for one in changed if heaps.is_there(session, one)])
        heaps.settle(session, changed)

    def _enter(self, scope: Scope) -> None:
        """Give every carried thing a Block argument and its stand-in inside the body."""
        session = self.session
        for slot in self.slots:
            types = structure.types_of(session, slot.carried)
            self.args += [session.new_variable(type_, slot.label) for type_ in types]
        self.inner += self._lifted(iter(self.args))
        for slot, value in zip(self.slots, self.inner):
            if value is not slot.init and isinstance(value, torch.Tensor) and isinstance(slot.init, torch.Tensor):
                scope.begins[session.read(value)] = session.read(slot.init)
        self.body = Body(session, scope, self.entry, self.touched, self.location)
        for part in self.parts:
            self.args += part.arguments(self.body)
        firsts = ((slot.init, slot.carried, value) for slot, value in zip(self.slots, self.inner))
        origins.enter_loop(session, self.loop, scope, firsts)
        scope.block.args.extend(self.args)
        self.names.set(tuple(self.inner[: self.count]))
        for slot, value in zip(self.slots[self.count :], self.inner[self.count :]):
            store(session, slot.place, value)
        pairs = list(self._pairs([slot.init for slot in self.slots], self.inner))
        stand_ins = list(self._pairs(self.inner, self.inner))
        for part in self.parts:
            part.enter(self.body, pairs, stand_ins)

    def _lifted(self, variables: Iterator[Variable]) -> list[Any]:
        """The values of all slots, carried by the next Variables."""
        session = self.session
        stand_ins: dict[Hashable, Any] = {
            slot.cell: loop_objects.stand_in(session, slot.cell) for slot in self.slots if slot.cell
        }
        context = structure.JoinContext(stand_ins=stand_ins)
        values = [flattening.lift(session, slot.carried, variables, context) for slot in self.slots]
        for slot, value in zip(self.slots, values):
            if slot.cell is not None:
                loop_objects.fill(session, stand_ins[slot.cell], slot.cell, value)
        return values

    def _pairs(
        self, values: Sequence[Any], stand_ins: Sequence[Any]
    ) -> Iterator[tuple[Number, torch.Tensor, torch.Tensor]]:
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
        """Whether the guess holds, and places stored to that are no slots; widens ``slots`` if not.

        ``late``: what differs in length every time is taken for a list that grows.

        Those ``repeated`` from an equal attempt belong to objects older than the loop: they become slots.
        """
        session, path = self.session, self.path
        if path.ended:
            return True, set()
        unknown: set[Place] = set()
        repeated = repeated | {place for place in path.places if is_held(session, place.owner)}
        entry_places = {place: held(place) for place in path.places}
        known_places = {slot.place for slot in self.slots if slot.place is not None}
        outs, contents = self._outs([*known_places, *(repeated - known_places)])
        later = session.held_in_lists.keys() - self.held
        stable = self.old.isdisjoint(later) and self.objects.isdisjoint(later)  # the next iteration begins with them
        stable = stable and not any(storage.pools for storage in self.no_item)
        next_slots: list[Slot] = []
        starts = [unification.structure_of(session, slot.init, structure.PLAIN) for slot in self.slots]
        context = structure.JoinContext(self.made)
        gone = {slot.cell for slot in self.slots if slot.cell and slot.init is not None} - contents.keys()
        """Lists of variables that had one place each, as long as it was not known what else the loop changes."""
        with path.inside(session):
            for slot, start, out in zip(self.slots, starts, outs):
                carried = slot.carried
                if isinstance(carried, structure.Made) and carried.cell in gone:
                    carried = start
                if out is None and slot.cell is not None:  # no object of this iteration
                    next_slots.append(slot)
                    continue
                mine = context.mixing(late or (slot.place is not None and slot.place.kind == "content"))
                picture = unification.structure_of(session, out, mine)
                if isinstance(carried, structure.Known):
                    if not structure.same_known(out, carried.value):
                        first = carried if slot.cell is not None and slot.init is None else start
                        carried = unification.unify(session, first, picture, mine)
                        if isinstance(carried, structure.Known):
                            carried = unification.carried(session, picture, mine)
                elif not unification.fits(session, picture, carried, mine):
                    carried = unification.unify(session, carried, picture, mine)
                next_slots.append(Slot(slot.label, slot.init, carried, slot.place, slot.cell))
                if carried is not slot.carried:
                    stable = False
                    self.changed.append(next_slots[-1])
            for place, out in path.places.items():
                before = entry_places[place]
                out = self.contents.get(place, out)
                if place in known_places or structure.same_known(out, before):
                    continue
                if place.kind == "content" and same_items(out, before):
                    continue
                if id(place.owner) in session.hidden or type(out) is RowField:
                    continue
                if place not in repeated:
                    if id(place.owner) not in self.made:
                        unknown.add(place)
                    continue
                mine = context.mixing(late or place.kind == "content")
                first, last = (unification.structure_of(session, value, mine) for value in (before, out))
                carried = unification.unify(session, first, last, mine)
                next_slots.append(Slot(place.name, before, carried, place))
                stable = False
            for cell in contents:
                if any(slot.cell == cell for slot in self.slots):
                    continue
                picture = unification.structure_of(session, contents[cell], context)
                carried = unification.carried(session, picture, context)
                init = self.starts.get(cell)
                if init is not None:
                    carried = unification.unify(
                        session, unification.structure_of(session, init, context), carried, context
                    )
                next_slots.append(Slot("", init, carried, cell=cell))
                stable = False
        with path.inside(session):
            leaving = list(self._pairs(outs, self.inner))
        changed = {n for n, (old, new) in enumerate(zip(self.slots, next_slots)) if old.carried is not new.carried}
        for part in self.parts:
            stable = part.leave(self.body, path, leaving) and stable
            part.forget(changed)
        self.slots = next_slots
        self.outs = outs
        return stable, unknown

    def _outs(self, places: Sequence[Place]) -> tuple[list[Any], dict[Cell, tuple[Any, ...]]]:
        """What the slots hold at the end of the iteration, and what the objects do that it made and that leave it."""
        session, path = self.session, self.path
        with path.inside(session):
            self.contents = {place: held(place) for place in path.places if place.kind == "content"}
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
        began = {slot.cell: slot.init is not None for slot in self.slots}  # as an earlier attempt has said
        for cell, content in contents.items():
            places: list[Any] = list(cell.positions)
            if len(places) != 1 or places[0][1] != () or places[0][0] not in self.alone:
                continue
            first = self.slots[places[0][0]].init
            if not containers.is_container(first) or containers.kind_of(first) != cell.kind:
                continue
            start = self.firsts[places[0][0]]
            context = structure.JoinContext(self.made)
            old, new = (unification.structure_of(session, value, context) for value in (start, content))
            like = not isinstance(unification.unify(session, old, new, context), structure.Options)
            if began.get(cell, like):
                self.starts[cell] = start
                self.made[id(first)] = structure.Made(cell, cell.cls)

    def finish(self, first: Staged, location: Any, options: dict[str, Any]) -> None:
        """Record the Operator and give names, places and memory their values after the loop."""
        session, path = self.session, self.path
        if path.scope.refused is not None:
            raise path.scope.refused
        flag_type = ScalarType("bool")
        inits: list[Operand] = [session.operand(first)]
        types: list[Type] = []
        hints: list[str] = []
        for slot in self.slots:
            inits += self._lowered(slot, slot.init)
            mine = structure.types_of(session, slot.carried)
            types += mine
            hints += [slot.label] * len(mine)
        for part in self.parts:
            inits += part.inits()
            types += [type_ for type_, _ in part.carried()]
            hints += [hint for _, hint in part.carried()]
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
                for part in self.parts:
                    yields += part.yields(path)
        session.used_up = {**session.used_up, **path.used_up}
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
            key: options[key] for key in ("max_iterations", "already", "recompute", "checkpoints") if key in options
        }
        if "checkpoints" in attrs:
            _require_repeatable(session, (test, body))
        op = session.emit_operator(
            "while_loop",
            inits,
            None,
            [flag_type, *types],
            hints=["", *hints],
            blocks=[test, body],
            attrs=attrs,
            location=location,
        )
        variables = iter(op.outputs[1:])
        values = self._lifted(variables)
        for part in self.parts:
            part.recorded(variables)
        outs = self.inner if path.ended else self.outs
        rows = zip(outs, (slot.carried for slot in self.slots), self.inner, values)
        origins.leave_loop(session, self.loop, op, path, rows)
        histories.loop_recorded(session, path.scope, op, PathEnd(path.scope, path.ended))
        results = list(self._pairs(values, values))
        for part in self.parts:
            part.finish(self.body, op, path, results)
        self.names.set(tuple(values[: self.count]))
        for slot, value in zip(self.slots[self.count :], values[self.count :]):
            store(session, slot.place, value)

    def _lowered(self, slot: Slot, value: Any) -> list[Operand]:
        if slot.cell is not None and value is None:  # no object stands there: nothing says that it is read
            return flattening.lower_nothing(self.session, slot.carried, structure.PLAIN)
        return flattening.lower(self.session, value, slot.carried, structure.JoinContext(self.made))


__all__ = ["while_loop"]
