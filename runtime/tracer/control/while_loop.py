"""Tracing ``while_loop``: the body is traced until what it carries round is stable.

The condition is computed before the loop and at the end of each iteration, in eager's order, and carried as a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.ir import UNDEF, Block, Location, Operand, ScalarType, Type, Variable
from runtime.kinds import is_a
from runtime.tracer.control import unused
from runtime.tracer.control.branches import Names, Path, all_names, include_new, is_alone, trace_path
from runtime.tracer.control.cond import truth
from runtime.tracer.control.joined_copies import LoopCopies
from runtime.tracer.control.joined_leaves import LoopLeaves
from runtime.tracer.control.joined_nonwritable_views import LoopViews
from runtime.tracer.control.joined_orders import LoopOrders
from runtime.tracer.control.joined_used_up import LoopUsedUp
from runtime.tracer.control.loop_aliases import LoopAliases
from runtime.tracer.control.loop_steps import Steps
from runtime.tracer.control.loop_values import LoopValues
from runtime.tracer.control.memory_parts import LoopMemory
from runtime.tracer.control.merged import is_new
from runtime.tracer.control.parts import Body, LoopPart
from runtime.tracer.control.slots import (
    TRIES,
    Slot,
    first_slots,
    held,
    moved_lists,
    never_fixed,
    only_tensors_differ,
)
from runtime.tracer.memory.deferred import PathEnd
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import histories
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values import heaps, origins, tables
from runtime.tracer.values.loop_sizes import check_sizes


def while_loop(
    session: Session,
    first: Staged,
    test: Callable[[], Any],
    body: Callable[[], None],
    names: Names,
    options: dict[str, Any] | None = None,
    peelable: bool = False,
) -> None:
    """Stage a loop whose condition was ``first`` before the first iteration; leaves names and state as after it.

    ``peelable``: whether the caller would run the first iteration by itself, where this raises.
    """
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
    attempt = _settle(session, test, body, names, invariants, location, peelable)
    carried = [(slot.label, slot.carried) for slot in attempt.values.slots if slot.place is None]
    check_sizes(session, carried, invariants, location)
    attempt.finish(first, options or {})
    del attempt
    unused.forget(session)


def _settle(
    session: Session, test: Callable[[], Any], body: Callable[[], None], names: Names, invariants: dict[str, Any],
    location: Location | None, peelable: bool,
) -> _Attempt:  # fmt: skip
    """Trace the body until what it was taken to carry is what an iteration leaves."""
    entered = names.get()
    alone = {position for position in range(len(entered)) if is_alone(session, position, entered)}
    del entered
    slots = first_slots(session, names, invariants)
    parts = _new_parts(session)
    repeat: set[Place] | None = None
    alike = True
    steps = Steps()
    asked, limit = session.graph.gradients_asked, 0
    for number in range(TRIES):
        put_back = session.sizes.written()
        attempt = _Attempt(session, slots, parts, test, body, names, alone, alike, location, steps)
        if peelable and session.graph.gradients_asked > asked and not session.call.advanced:
            length = sum(1 for _ in attempt.path.scope.block.walk())
            limit = limit or GROWTH * length
            if length > limit:
                raise session.error(
                    f"an iteration takes {length} operators if it begins with what another one leaves, not "
                    f"{limit // GROWTH}", hint="Run the first iteration before the loop.", code="D2S250")
        stable, unknown = attempt.stable(repeat or set(), number >= TRIES // 3)
        if stable:
            left = attempt.left()
            attempt.values.require_reached(attempt.path, left)
            if not attempt.values.are_alike(attempt.path, left):
                stable = alike = False
        # An object made by the body is another one each time: what one of two equal attempts stored to is such.
        if stable and repeat is None:
            older = {place for place in unknown if id(place.owner) in attempt.older}
            if older:  # containers, of which an attempt with the first iteration's values may not show the items
                stable, unknown = attempt.stable(older, number >= TRIES // 3)
        found = stable and (not unknown or repeat is not None)
        moved = (not found or session.call.known.by_reference) and moved_lists(session, attempt.values.next_slots)
        if found and not moved:
            return attempt
        put_back()
        if moved:
            slots, repeat, parts = first_slots(session, names, invariants), None, _new_parts(session)
            steps = Steps()
            continue
        repeat = unknown if stable else None
        slots, parts = attempt.values.next_slots, [part.again() for part in attempt.parts]
        steps = attempt.values.next_steps
    raise never_fixed(session, attempt.values.changed, location)


GROWTH = 8
"""How many times as long as first the body of a loop may become that takes gradients and can be peeled. What an
optimizer makes in its first step is on some iterations only one of several then, in all that it does with it."""


PARTS: tuple[Callable[[Session], LoopPart], ...] = (
    LoopMemory, lambda session: LoopAliases(), lambda session: LoopViews(), lambda session: LoopUsedUp(),
    lambda session: LoopCopies(), lambda session: LoopLeaves(), lambda session: LoopOrders(),
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
        self, session: Session, slots: list[Slot], parts: list[LoopPart], test: Callable[[], Any],
        body: Callable[[], None], names: Names, alone: set[int], alike: bool, location: Location | None,
        steps: Steps,
    ) -> None:  # fmt: skip
        """``alike``: see ``Scope``."""
        self.alike = alike
        self.session = session
        self.parts = parts
        self.location = location
        self.names = names
        self.entry = session.storages.snapshot()
        self.args: list[Variable] = []
        self.values = values = LoopValues(session, slots, names, alone, (body, test), steps)

        def run() -> Any:
            body()
            flag = test()
            if session.call.known.by_reference:
                self._settle_lists()
            return truth(session, flag) if is_a(flag, (torch.Tensor, Staged)) else flag

        self.touched: set[Storage] = set()
        session.constructs.touched.append(self.touched)
        self.older = values.objects | values.old
        self.loop = origins.begin_loop(session, self.older)
        try:
            with session.origins.inside(self.loop):
                self.path: Path = trace_path(session, "while_loop", names, run, self._enter)
        finally:
            session.constructs.touched.pop()
        include_new(self.entry, [self.path])
        for part in parts:
            part.traced(self.body, self.path)

    def _settle_lists(self) -> None:
        """What the iteration leaves is handed on: lists inside of lists that it changed move to where they may be."""
        session = self.session
        entered = set(map(id, self.values.inner))
        changed = [value for value in self.names.get() if id(value) not in entered]
        changed += [place.owner if place.kind == "content" else place.get() for place in session.journal.frames[-1]]
        if session.call.known.in_variables:
            heaps.move_inside(session, [value for value in changed if heaps.is_there(session, value)])
        heaps.settle(session, changed)

    def _enter(self, scope: Scope) -> None:
        """Give every carried thing a Block argument and its stand-in inside the body."""
        session, values = self.session, self.values
        scope.alike = self.alike
        self.args += values.arguments(scope)
        self.body = Body(session, scope, self.entry, self.touched, self.location, self.older)
        for part in self.parts:
            self.args += part.arguments(self.body)
        firsts = ((slot.init, slot.carried, value) for slot, value in zip(values.slots, values.inner))
        origins.enter_loop(session, self.loop, scope, firsts)
        scope.block.args.extend(self.args)
        values.put(values.inner)
        pairs = list(values.pairs([slot.init for slot in values.slots], values.inner))
        stand_ins = list(values.pairs(values.inner, values.inner))
        for part in self.parts:
            part.enter(self.body, pairs, stand_ins)

    def stable(self, repeated: set[Place], widen_lengths: bool) -> tuple[bool, set[Place]]:
        """Whether the guess holds, and places stored to that are no slots and perhaps older; finds wider slots if not.

        ``widen_lengths``: what differs in length every time is taken for a list that grows.

        Attributes of objects older than the loop become slots, containers as old in which other tensors are now, and
        places ``repeated`` from an equal attempt: the body makes another object each time.
        """
        session, path, values = self.session, self.path, self.values
        if path.ended:
            return True, set()
        repeated = repeated | values.places_of_held(path)
        befores = {place: held(place) for place in path.places}
        with path.inside(session):
            repeated |= {place for place in path.places if id(place.owner) in self.older
                         and (place.kind != "content" or only_tensors_differ(befores[place], held(place)))}
        values.end(path, repeated)
        unknown = values.widen(path, befores, repeated, widen_lengths)
        stable = values.fit
        with path.inside(session):
            leaving = list(values.pairs(values.outs, values.inner))
        refitted = values.refitted()
        for part in self.parts:
            stable = part.leave(self.body, path, leaving) and stable
            part.forget(refitted)
        return stable, {one for one in unknown if not is_new(session, one, values.old, values.objects)}

    def left(self) -> dict[Variable, Variable]:
        """What the next iteration has for tensors and memory that this one begins with; nothing if there is none."""
        if self.path.ended:
            return {}
        carriers: list[LoopValues | LoopPart] = [self.values, *self.parts]
        return {var: end for carrier in carriers for var, end in carrier.left(self.path).items()}

    def finish(self, first: Staged, options: dict[str, Any]) -> None:
        """Record the Operator and give names, places and memory their values after the loop."""
        session, path, values = self.session, self.path, self.values
        if path.scope.refused is not None:
            raise path.scope.refused
        carriers: list[LoopValues | LoopPart] = [values, *self.parts]
        inits: list[Operand] = [session.operand(first)]
        carried: list[tuple[Type, str]] = [(ScalarType("bool"), "")]
        for carrier in carriers:
            inits += carrier.inits()
            carried += carrier.carried()
        types, hints = [type_ for type_, _ in carried], [hint for _, hint in carried]
        yields = [UNDEF] * len(types) if path.ended else self._yields()
        body = path.scope.block
        body.args.insert(0, session.new_variable(types[0], "", path.scope))
        body.yields.extend(yields)
        test = Block([
            session.new_variable(types[0], "", path.scope),
            *(session.new_variable(arg.type, arg.hint, path.scope) for arg in self.args),
        ])  # fmt: skip
        test.yields.append(test.args[0])
        attrs: dict[str, Any] = {
            key: options[key] for key in ("max_iterations", "already", "recompute", "checkpoints") if key in options
        }
        if "checkpoints" in attrs:
            _require_repeatable(session, (test, body))
        op = session.emit_operator(
            "while_loop", inits, None, types, hints=hints, blocks=[test, body], attrs=attrs, location=self.location)
        variables = iter(op.outputs[1:])
        results = values.lifted(variables)
        for part in self.parts:
            part.recorded(variables)
        outs = values.inner if path.ended else values.outs
        rows = zip(outs, (slot.carried for slot in values.slots), values.inner, results)
        origins.leave_loop(session, self.loop, op, path, rows)
        histories.loop_recorded(session, path.scope, op, PathEnd(path.scope, path.ended))
        pairs = list(values.pairs(results, results))
        for part in self.parts:
            part.finish(self.body, op, path, pairs)
        values.put(results)

    def _yields(self) -> list[Operand]:
        """What the iteration yields: whether there is another one, and all that is carried."""
        session, path = self.session, self.path
        with path.inside(session):
            flag = path.result if is_a(path.result, (bool, Staged)) else bool(path.result)
            yields = [session.operand(flag), *self.values.lowered(self.values.outs)]
            for part in self.parts:
                yields += part.yields(path)
        return yields


__all__ = ["while_loop"]
