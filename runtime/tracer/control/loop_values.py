"""The values of a ``while_loop``: what it carries in slots, as one attempt to trace its body takes them to be.

An attempt begins with slots of some structure, lifts them to what stands for them in the body, and finds out at the end
of the iteration whether they still fit. ``next_slots`` are those of the next attempt: wider ones, and new ones for
places in Python state and objects that the iteration turned out to change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import torch

from runtime.ir import Operand, Type, Variable
from runtime.kinds import is_a
from runtime.tracer.control import existence, loop_objects
from runtime.tracer.control.branches import Names, Path
from runtime.tracer.control.loop_objects import Cell, LoopObjects
from runtime.tracer.control.loop_steps import Held, Steps
from runtime.tracer.control.merged import is_new
from runtime.tracer.control.older import Identities, older
from runtime.tracer.control.parts import Number
from runtime.tracer.control.slots import Slot, held, same_items, store
from runtime.tracer.python_state.held import RowField, is_held, keys_change
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import gradients
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values import containers, flattening, structure, unification
from runtime.tracer.values.tables import table_for
from runtime.tracer.values.tensor_pairs import tensor_pairs


class LoopValues:
    """The slots of one attempt, what stands for them in the body, and what the iteration leaves in them."""

    def __init__(
        self, session: Session, slots: list[Slot], names: Names, alone: set[int],
        functions: Sequence[Callable[..., Any]], steps: Steps | None = None,
    ) -> None:  # fmt: skip
        """``alone``: the names, by number, that are all that refers to the list or dict with which the loop begins.

        ``functions``: those of the loop's condition and body.
        """
        self.session = session
        self.slots = slots
        self.next_slots = slots
        self.steps = self.next_steps = steps or Steps()
        """What is known of sizes that change, and what is in the next attempt."""
        self.changed: list[Slot] = []
        """Those of ``next_slots`` that were widened."""
        self.inner: list[Any] = []
        """What stands for the slots in the body."""
        self.outs: list[Any] = []
        """What the slots hold at the end of the iteration."""
        self._begun: dict[Variable, torch.Tensor] = {}
        """What stands for tensors in the body, by the Block's arguments."""
        self.made: dict[int, structure.Made] = {}
        """What the iteration made and leaves, by identity."""
        self.objects = Identities(session.objects.created)
        """Objects that no iteration of this attempt made, by identity."""
        self.old = older(session, functions, names.get(), self.objects)
        """The containers among them."""
        self._names = names
        self._count = len(names.names)
        self._alone = alone
        self._firsts = {position: containers.content(slots[position].init) for position in alone}
        """What the lists and dicts ``alone`` hold before the loop."""
        self._starts: dict[Cell, Any] = {}
        self._contents: dict[Place, Any] = {}
        """What the changed containers hold at the end of the iteration."""
        self._by_themselves: dict[int, list[Any]] = {}
        """Hidden containers by what they stand for, which is not carried then (see ``containers``)."""
        self._cells: dict[Cell, tuple[Any, ...]] = {}
        """What the objects do that the iteration made and that leave it."""

    def arguments(self, scope: Scope) -> list[Variable]:
        """The Block's arguments for the slots, which from then on have something to stand for them."""
        session = self.session
        args = []
        for slot in self.slots:
            types = structure.types_of(session, slot.carried)
            args += [session.new_variable(type_, slot.label) for type_ in types]
        self.inner += self.lifted(iter(args))
        for slot, value in zip(self.slots, self.inner):
            if value is not slot.init and is_a(value, torch.Tensor) and is_a(slot.init, torch.Tensor):
                scope.begins[session.read(value)] = session.read(slot.init)
                scope.firsts[id(value)] = value, slot.init
                self._begun[session.read(value)] = value
        return args

    def left(self, path: Path) -> dict[Variable, Variable]:
        """What the next iteration has for the tensors that this one begins with, where tensors are left."""
        ends = {id(value): end for value, end in zip(self.inner, self.outs)}
        found = ((var, ends.get(id(value))) for var, value in self._begun.items())
        with path.inside(self.session):
            return {var: self.session.read(end) for var, end in found if is_a(end, torch.Tensor)}

    def are_alike(self, path: Path, left: Mapping[Variable, Variable]) -> bool:
        """Whether gradients of the next iteration surely reach the leaves that those of this one were taken to reach by
        what was before the loop. ``left``: what it has for what this one begins with."""
        session = self.session
        if path.ended:  # there is no next iteration
            return True
        ends = {id(value): end for value, end in zip(self.inner, self.outs)}
        with path.inside(session):
            for carried, before in path.scope.taken_alike:
                leaf = ends.get(id(before), before)
                if not is_a(leaf, torch.Tensor) or not any(
                    gradients.reaches_surely(session, left[var], leaf) for var in carried if var in left
                ):
                    return False
        return True

    def require_reached(self, path: Path, left: Mapping[Variable, Variable]) -> None:
        """Refuse a loop whose later iterations take gradients that may reach what those of this one do not. ``left``:
        what they have for what this one begins with.

        Raises:
            TraceError: D2S213.
        """
        session = self.session
        if path.ended or not path.scope.not_reached:
            return
        ends = {id(value): end for value, end in zip(self.inner, self.outs)}
        with path.inside(session):
            for carried, missed in path.scope.not_reached:
                asked = [end for end in (ends.get(id(one), one) for one in missed) if is_a(end, torch.Tensor)]
                todo, seen = [var for var in carried if var in left], set(carried)
                while todo:  # what is carried may be handed on from one to another
                    found = gradients.reached_from(session, left[todo.pop()], asked)
                    if not found.isdisjoint(gradients.values_of(session, asked)):
                        raise session.error(
                            "a gradient is asked for of what an iteration leaves to the next one, and reaches more "
                            "tensors there than in the first iteration",
                            hint="Ask for it in the iteration that computes it, or run the first one before the loop.",
                            code="D2S213")
                    new = [var for var in left if var in found and var not in seen]
                    seen.update(new)
                    todo += new

    def put(self, values: Sequence[Any]) -> None:
        """Let the variables and places hold these, one a slot."""
        self._names.set(tuple(values[: self._count]))
        for slot, value in zip(self.slots[self._count :], values[self._count :]):
            store(self.session, slot.place, value)

    def lifted(self, variables: Iterator[Variable]) -> list[Any]:
        """The values of all slots, carried by the next Variables."""
        session = self.session
        stand_ins: dict[Hashable, Any] = {
            slot.cell: loop_objects.stand_in(session, slot.cell) for slot in self.slots if slot.cell
        }
        context = structure.JoinContext(stand_ins=stand_ins)
        mine = list(itertools.islice(variables, sum(structure.width(slot.carried) for slot in self.slots)))
        inits = [slot.init for slot in self.slots]
        told = self.steps.told(session, [slot.carried for slot in self.slots], inits, mine)
        variables = iter(mine)
        values = [flattening.lift(session, one, variables, context) for one in told]
        for slot, value in zip(self.slots, values):
            if slot.cell is not None:
                loop_objects.fill(session, stand_ins[slot.cell], slot.cell, value)
        existence.note_iteration(session, [(slot.carried, value) for slot, value in zip(self.slots, values)])
        return values

    def lowered(self, values: Sequence[Any]) -> list[Operand]:
        """The Operands that carry these, one value a slot."""
        operands = []
        for slot, value in zip(self.slots, values):
            if slot.cell is not None and value is None:  # no object stands there: nothing says that it is read
                operands += flattening.lower_nothing(self.session, slot.carried, structure.PLAIN)
            else:
                context = structure.JoinContext(self.made)
                operands += flattening.lower(self.session, value, slot.carried, context)
        return operands

    def inits(self) -> list[Operand]:
        """What the slots are before the loop."""
        return self.lowered([slot.init for slot in self.slots])

    def carried(self) -> list[tuple[Type, str]]:
        """Types and labels of what is carried for the slots."""
        return [
            (type_, slot.label) for slot in self.slots for type_ in structure.types_of(self.session, slot.carried)
        ]

    def pairs(
        self, values: Sequence[Any], stand_ins: Sequence[Any]
    ) -> Iterator[tuple[Number, torch.Tensor, torch.Tensor]]:
        """The tensors of the state, by number, beside those that stand for them."""
        for index, (slot, value, stand_in) in enumerate(zip(self.slots, values, stand_ins)):
            if is_a(slot.carried, structure.Known):
                continue
            order: dict[int, int] = {}
            for _, tensor in tensor_pairs(stand_in, stand_in, slot.carried):
                order.setdefault(id(tensor), len(order))
            for tensor, other in tensor_pairs(value, stand_in, slot.carried):
                yield (index, order[id(other)]), tensor, other

    def end(self, path: Path, repeated: set[Place]) -> None:
        """Find what the iteration leaves in the slots, and in the places ``repeated``."""
        session = self.session
        places = {*(slot.place for slot in self.slots if slot.place is not None), *repeated}
        self._by_themselves = containers.by_themselves(session, [path.places])
        with path.inside(session):
            self._contents = {place: held(place) for place in path.places if place.kind == "content"}
        ends = {place: self._contents.get(place, path.places[place]) for place in places if place in path.places}
        for slot, value in zip(self.slots, self.inner):
            if slot.place is not None:
                ends.setdefault(slot.place, value)
        with path.inside(session):
            found = LoopObjects(session, self.objects, self.old)
            self.made = found.find([*enumerate(path.names), *ends.items()])
            self._find_starts(found.contents)
        values = [
            ends[slot.place] if slot.place is not None else found.contents.get(slot.cell) if slot.cell else None
            for slot in self.slots[self._count :]
        ]
        self.outs, self._cells = [*path.names, *values], found.contents

    def _find_starts(self, contents: dict[Cell, Any]) -> None:
        """Where an iteration makes a variable's list anew, the one it begins with is the first of them."""
        session = self.session
        began = {slot.cell: slot.init is not None for slot in self.slots}  # as an earlier attempt has said
        for cell, content in contents.items():
            places: list[Any] = list(cell.positions)
            if len(places) != 1 or places[0][1] != () or places[0][0] not in self._alone:
                continue
            first = self.slots[places[0][0]].init
            if not containers.is_container(first) or containers.kind_of(first) != cell.kind:
                continue
            start = self._firsts[places[0][0]]
            context = structure.JoinContext(self.made)
            old, new = (unification.structure_of(session, value, context) for value in (start, content))
            like = not is_a(unification.unify(session, old, new, context), structure.Options)
            if began.get(cell, like):
                self._starts[cell] = start
                self.made[id(first)] = structure.Made(cell, cell.cls)

    def widen(self, path: Path, befores: dict[Place, Any], repeated: set[Place], widen_lengths: bool) -> set[Place]:
        """Find the slots of the next attempt; returns the places stored to that are no slots.

        ``befores``: what the places that the iteration changed hold before the loop. Those ``repeated`` become slots.
        ``widen_lengths``: what differs in length every time is taken for a list that grows.
        """
        session = self.session
        self.next_slots = []
        new: list[Held] = []
        starts = [unification.structure_of(session, slot.init, structure.PLAIN) for slot in self.slots]
        context = structure.JoinContext(self.made)
        empty = [place.owner for place in path.places if place.kind == "content" and type(place.owner) is dict
                 and not is_new(session, place, self.old, self.objects) and table_for(session, place.owner) is None]
        with path.inside(session):
            if any(structure.row_of(one) is not None for one in empty):  # it got keys, and went into their table
                raise keys_change(session)
            self._widen_slots(starts, context, widen_lengths)
            unknown = self._new_places(path, befores, repeated, context, widen_lengths, new)
            self._new_cells(context, new)
            held = [Held(slot.init, inner, out) for slot, inner, out in zip(self.slots, self.inner, self.outs)]
            settled = not (self.changed or new)  # else this attempt is not the last one, whatever else it finds
            carried = [slot.carried for slot in self.next_slots]
            self.next_steps = self.steps.again(session, carried, [*held, *new], settled)
        return unknown

    def _widen_slots(
        self, starts: Sequence[structure.Structure], context: structure.JoinContext, widen_lengths: bool
    ) -> None:
        session = self.session
        gone = {slot.cell for slot in self.slots if slot.cell and slot.init is not None} - self._cells.keys()
        """Lists of variables that had one place each, as long as it was not known what else the loop changes."""
        for slot, start, out in zip(self.slots, starts, self.outs):
            carried = slot.carried
            options = carried.options if is_a(carried, structure.Options) else (carried,)
            if any(is_a(one, structure.Made) and one.cell in gone for one in options):
                carried = start
                for one in options:
                    if not (is_a(one, structure.Made) and one.cell in gone):
                        carried = unification.unify(session, carried, one, context)
            if out is None and slot.cell is not None:  # no object of this iteration
                self.next_slots.append(slot)
                continue
            mixing = context.mixing(widen_lengths or (slot.place is not None and slot.place.kind == "content"))
            leaving = unification.structure_of(session, out, mixing)
            self._hold_new_items(leaving)
            if is_a(carried, structure.Known):
                if not structure.same_known(out, carried.value):
                    first = carried if slot.cell is not None and slot.init is None else start
                    carried = unification.unify(session, first, leaving, mixing)
                    if is_a(carried, structure.Known):
                        carried = unification.carried(session, leaving, mixing)
            elif not unification.fits(session, leaving, carried, mixing):
                carried = unification.unify(session, carried, leaving, mixing)
            self.next_slots.append(Slot(slot.label, slot.init, carried, slot.place, slot.cell))
            if carried is not slot.carried:
                self.changed.append(self.next_slots[-1])

    def _hold_new_items(self, leaving: structure.Structure) -> None:
        """A path of the iteration has put objects that it made into a list that grows, where they are known as those
        objects: in the next iteration they are others.

        Raises:
            Restart: Such a list holds them by reference.
        """
        made = {type(one) for one in structure.known_items(leaving)
                if id(one) in self.session.objects.created and id(one) not in self.objects}
        if made:
            self.session.hold_by_reference(*made)

    def _new_places(
        self, path: Path, befores: dict[Place, Any], repeated: set[Place], context: structure.JoinContext,
        widen_lengths: bool, found: list[Held],
    ) -> set[Place]:  # fmt: skip
        """Slots for the places ``repeated`` that the iteration stored to; returns those that are none."""
        session = self.session
        known = {slot.place for slot in self.slots if slot.place is not None}
        unknown: set[Place] = set()
        hidden = {id(made) for inner in self._by_themselves.values() for made in inner}
        for place, stored in path.places.items():
            before, out = befores[place], self._contents.get(place, stored)
            if place in known or structure.same_known(out, before):
                continue
            if place.kind == "content" and same_items(out, before):
                continue
            if type(out) is RowField or (place.kind == "content" and id(place.owner) in self._by_themselves):
                continue
            if id(place.owner) in session.containers.hidden and id(place.owner) not in hidden:
                continue
            if place not in repeated:
                if id(place.owner) not in self.made:
                    unknown.add(place)
                continue
            mixing = context.mixing(widen_lengths or place.kind == "content")
            first, last = (unification.structure_of(session, value, mixing) for value in (before, out))
            self._hold_new_items(last)
            self.next_slots.append(Slot(place.name, before, unification.unify(session, first, last, mixing), place))
            found.append(Held(before, before, out))
        return unknown

    def _new_cells(self, context: structure.JoinContext, found: list[Held]) -> None:
        """Slots for what the objects hold that the iteration turned out to make."""
        session = self.session
        known = {slot.cell for slot in self.slots}
        for cell, content in self._cells.items():
            if cell in known:
                continue
            carried = unification.carried(session, unification.structure_of(session, content, context), context)
            init = self._starts.get(cell)
            if init is not None:
                first = unification.structure_of(session, init, context)
                carried = unification.unify(session, first, carried, context)
            self.next_slots.append(Slot("", init, carried, cell=cell))
            found.append(Held(init, init, content))

    @property
    def fit(self) -> bool:
        """Whether the slots are what an iteration leaves, so that none was widened or added."""
        return not self.changed and len(self.next_slots) == len(self.slots) and self.next_steps is self.steps

    def refitted(self) -> set[int]:
        """Numbers of the slots that have another structure now."""
        both = enumerate(zip(self.slots, self.next_slots))
        return {number for number, (old, new) in both if old.carried is not new.carried}

    def places_of_held(self, path: Path) -> set[Place]:
        """Places that the iteration stored to of objects that a list that grows holds: they are the loop's."""
        return {place for place in path.places if is_held(self.session, place.owner)}


__all__ = ["LoopValues"]
