"""Tracing ``recursion``: the body of a function that calls itself, until what goes in and comes out is stable.

The arguments are slots, as of a loop: at first each is taken for what the first call was given, and a call inside that
gives something else widens it. What the function gives is not known at first. A path that needs it ends there, so the
other paths tell; the next attempt begins with that. Memory of the results may be that of arguments, or of tensors from
before: which of them a result can be is a part of the same fixed point, and a write to either is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir import UNDEF, Block, Location, Variable
from runtime.kinds import is_a
from runtime.tracer.control import joined_copies
from runtime.tracer.control.branches import PathEnds, all_names, include_new, trace_path
from runtime.tracer.control.changes import Older, written_at
from runtime.tracer.control.given_tensors import GivenTensors, leaves
from runtime.tracer.control.join import outside
from runtime.tracer.control.slots import Slot, held, same_items
from runtime.tracer.memory.conditions import ALWAYS
from runtime.tracer.memory.storage_table import Storage, note_overlap, note_unknown_alias
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.numbers.staging import NoNames
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.journal import Place, cell_value
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values import containers, flattening, structure, unification
from runtime.tracer.values.describing import describe
from runtime.tracer.values.structure import PLAIN
from runtime.tracer.values.tensor_pairs import tensor_pairs

TRIES = 24
"""So often a body is traced to find what its calls are given and give."""

_WAY_OUT = "Write it as a loop over tensors that hold what is still to be done."

_REASON = "what a recursive function gives may be its argument, or memory from before it was called"


@dataclass(frozen=True)
class Argument:
    """An argument of a recursive function: its name, and the value that a call gives."""

    name: str
    value: Any


Body = Callable[[Sequence[Any]], Any]
"""The function's body, of the values of its arguments."""


def begin(session: Session, key: Any, name: str, functions: Sequence[Callable[..., Any]],
          arguments: Sequence[Argument], body: Body) -> Any:  # fmt: skip
    """A call of a function that calls itself, from outside; what it gives.

    ``key``: what a call inside must be equal in to be one of the same function.
    """
    recursion = Recursion(session, key, name, functions, arguments, body)
    if not recursion.settle():
        return body([one.value for one in arguments])
    return recursion.finish()


def open_recursion(session: Session, key: Any) -> Recursion | None:
    """The recursion of a function whose body is being traced."""
    found = [one for one in session.code.recursions if one.key == key]
    return found[-1] if found else None


class Recursion:
    """A function that calls itself, and what its calls are taken to give and to be given."""

    def __init__(
        self, session: Session, key: Any, name: str, functions: Sequence[Callable[..., Any]],
        arguments: Sequence[Argument], body: Body,
    ) -> None:  # fmt: skip
        self.session, self.key, self.body = session, key, body
        self.function = name
        self.location = session.location()
        self.slots = [Slot(one.name, one.value, structure.Known(one.value)) for one in arguments]
        self.results: structure.Structure | None = None
        """None: nothing is known of what it gives."""
        self.shares: set[int | Storage] = set()
        """What the memory of its results may be: that of an argument, by number, or memory from before."""
        self._arguments, self._gives = GivenTensors(session), GivenTensors(session)
        self._since = session.origins.number()
        """What has a higher number is made in the calls."""
        self.name = session.new_name(name)
        self.modes = torch_internals.ambient_modes()
        self.handlers = len(session.exceptions.catching)
        self.changed: list[str] = []
        """What the attempt at hand found to be other than it was taken to be, in words."""
        self.waits = False
        """Whether a path of the attempt at hand ended because not enough was known."""
        self.called_at: Location | None = None
        """Where it last called itself."""
        self._older = Older(session, functions, [one.value for one in arguments])
        self._variables = [pair for f in functions if is_a(f, FunctionType)
                           for pair in zip(f.__code__.co_freevars, f.__closure__ or ())]  # fmt: skip
        self._params: dict[Storage, int] = {}
        """The memory of the arguments in the attempt at hand."""
        self._frame = 0
        """The number of the journal's frame that has what it stores."""

    # -- the fixed point -----------------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Trace the body until nothing is other than it was taken to be; whether it calls itself at all.

        Raises:
            TraceError: D2S270, where that is never so, or where the function does what only a call of its own may do.
            PathEnds: A recursion around this one has to be traced again before this one can be.
        """
        around = list(self.session.code.recursions)
        for _ in range(TRIES):
            if not self._attempt():
                return False
            if self.changed:
                continue
            if not self.waits:
                return True
            if any(one.waits or one.changed for one in around):
                raise PathEnds()
            raise self.error(f"{self.function}() calls itself on every path, so that it never ends",
                             hint="Let one path give a result without a call of the function itself.")
        last = ", ".join(dict.fromkeys(self.changed))
        raise self.error(f"what {self.function}() is given or gives never reaches a fixed structure: after {TRIES} "
                         f"attempts {last}", hint="Give it the same kind of value in every call.")  # fmt: skip

    def _attempt(self) -> bool:
        """Trace the body once; whether it called itself."""
        session = self.session
        self.changed, self.waits = [], False
        names = all_names(session, _NO_NAMES)
        before = names.get()
        self._frame = len(session.journal.frames)
        self._arguments.include(self._leaves([slot.init for slot in self.slots]), self._since)
        session.code.recursions.append(self)
        try:
            with session.origins.asking_apart():
                self.path = trace_path(session, "recursion", names, self._run, self._enter)
        finally:
            session.code.recursions.pop()
        path = self.path
        joined_copies.keep(session, path)
        if self.called_at is None:
            return False
        include_new(self._older.storages, [path])
        if not all(map(structure.same_known, path.names, before)):
            raise self.error(f"{self.function}() hands items to a loop around it that stores to variables of its own",
                             hint="Collect the items in what the function gives.")
        self._require_no_changes()
        if not path.ended:
            scope = session.scope
            with path.inside(session):  # where objects hold what they do in the end
                self._widen_results(self._given(path.result, scope, set()))
        return True

    def _enter(self, scope: Scope) -> None:
        """Every argument that differs between calls is one of the Block."""
        session = self.session
        types = [(type_, slot.label) for slot in self.slots for type_ in structure.types_of(session, slot.carried)]
        args = [session.new_variable(type_, label) for type_, label in types]
        scope.block.args.extend(args)
        variables, made = iter(self._arguments.variables(args)), dict[Variable, torch.Tensor]()
        self.inner = [flattening.lift(session, slot.carried, variables, PLAIN, made) for slot in self.slots]
        self._arguments.note(list(made.values()), self._leaves(self.inner), arguments=True)
        self._params = {}
        for number, (slot, value) in enumerate(zip(self.slots, self.inner)):
            for tensor in _tensors(value, slot.carried):
                storage = session.info(tensor).storage
                self._params[storage] = number
                note_overlap(storage, f"'{slot.label}' of {self.function}(), which calls itself, may be any memory")

    def _leaves(self, values: Sequence[Any]) -> list[tuple[int, Any]]:
        """The tensors of arguments."""
        at, found = 0, list[tuple[int, Any]]()
        for slot, value in zip(self.slots, values):
            found += leaves(value, slot.carried, at)
            at += structure.width(slot.carried)
        return found

    def _run(self) -> Any:
        return self.body(self.inner)

    def _given(self, value: Any, scope: Scope, seen: set[int]) -> structure.Structure:
        """How a result is carried; ``scope``: what is known there is so in every call.

        A list or dict that the call made, and that nobody else can have, since a call stores to nothing that is older,
        is given item by item: it is made anew where the call stands.
        """
        session = self.session
        if self._is_own(value):
            if id(value) in seen:
                raise self.error(f"{self.function}() gives one {type(value).__name__} in two places",
                                 hint="Give it once, or copy it.")
            seen.add(id(value))
            items = dict.values(value) if is_a(value, dict) else value
            parts = tuple(self._given(item, scope, seen) for item in items)
            if is_a(value, dict):
                return structure.Fields(dict, tuple(value), parts)
            return structure.Sequence(list, parts)
        if type(value) is tuple and any(map(self._holds_own, value)):
            return structure.Sequence(tuple, tuple(self._given(item, scope, seen) for item in value))
        with session.reopen(scope):
            known = not structure.has_traced(value) or outside(session, self._older.storages, value)
        if known:
            return structure.Known(value)
        return unification.carried(session, unification.structure_of(session, value, PLAIN), PLAIN)

    def _holds_own(self, value: Any) -> bool:
        return any(map(self._holds_own, value)) if type(value) is tuple else self._is_own(value)

    def _is_own(self, value: Any) -> bool:
        """Whether this is a list or dict that the call made, with items that are known."""
        if type(value) not in (list, dict) or self._older.has(value):
            return False
        if id(value) in self.session.objects.externals or containers.several(value) is not None:
            return False
        if is_a(value, dict):
            return all(map(is_plain, value))
        return structure.growing(value) is None and structure.row_of(value) is None

    def _widen_results(self, found: structure.Structure) -> None:
        session, result = self.session, self.path.result
        self._require_carried(found, f"{self.function}() gives")
        before = self.results
        if before is None:
            self.results = found
        elif is_a(before, structure.Known) and is_a(found, structure.Known):
            if not structure.same_known(before.value, found.value):
                self.results = unification.unify(session, before, found, PLAIN)
        elif not unification.fits(session, found, before, PLAIN):
            self.results = unification.unify(session, before, found, PLAIN)
        if self.results is not before:
            assert self.results is not None
            self.results = unification.require_few(session, self.results)
            self._require_carried(self.results, f"{self.function}() gives")
            self.changed.append(f"it gives {describe(self.results)}")
            self._gives = GivenTensors(session)
        shares = self._shared(result, self.results or found)
        if not shares <= self.shares:
            self.shares |= shares
            self.changed.append("its results are other memory")
        given = list(leaves(result, self.results or found))
        handed = [slot.init for slot in self.slots if is_a(slot.carried, structure.Known)]
        around = [cell_value(cell) for _, cell in self._variables]
        always = self._gives.include_itself(given, [one for value in (*handed, *around) for one in _tensors_in(value)])
        if self._gives.include(given) or always:
            self.changed.append("its results are other objects")

    def _shared(self, result: Any, carried: structure.Structure) -> set[int | Storage]:
        """What the memory of the results may be, besides memory that the body makes."""
        todo = [self.session.info(tensor).storage for tensor in _tensors(result, carried)]
        seen: set[Storage] = set()
        while todo:
            storage = todo.pop()
            if storage in seen:
                continue
            seen.add(storage)
            todo += (alias.base for alias in storage.aliases)
            todo += (other for one in storage.unknown_aliases if (other := one.other()) is not None)
            if storage.alias_sets:  # one of many items: which, nobody knows
                todo += (one for one in (*self._params, *self._older.storages) if one.alias_sets)
        own = {self._params[one] for one in seen if one in self._params}
        return own | {one for one in seen if one in self._older.storages}

    # -- calls ---------------------------------------------------------------------------------------------------

    def again(self, arguments: Sequence[Argument]) -> Any:
        """A call of the function in its own body; what it gives.

        Raises:
            PathEnds: Not enough is known yet, or something is other than it was taken to be.
        """
        session = self.session
        self.called_at = session.location()
        changed = torch_internals.changed_modes(self.modes)
        if changed:
            raise self.error(f"{self.function}() calls itself where {changed[0]} is another one than in its first call",
                             hint="Set it around the first call.")
        if len(session.exceptions.catching) > self.handlers:
            raise self.error(f"{self.function}() calls itself inside a try or with statement that may catch what the "
                             "call raises", hint="Put the try around the first call.")  # fmt: skip
        self._require_state()
        values = [one.value for one in arguments]
        for number, (slot, value) in enumerate(zip(self.slots, values)):
            wider = self._widened(slot, value)
            if wider is not slot.carried:
                self.slots[number] = Slot(slot.label, slot.init, wider)
                self.changed.append(f"'{slot.label}' is {describe(wider)}")
                self._arguments = GivenTensors(session)
        if not self.changed and self._arguments.include(self._leaves(values), self._since):
            self.changed.append("its arguments are other objects")
        if self.changed:  # the Block has no Variables for that
            raise PathEnds()
        if self.results is None:
            self.waits = True
            raise PathEnds()
        operands = [one for slot, value in zip(self.slots, values)
                    for one in flattening.lower(session, value, slot.carried, PLAIN)]  # fmt: skip
        return self._call("recur", operands, values)

    def _widened(self, slot: Slot, value: Any) -> structure.Structure:
        session, carried = self.session, slot.carried
        if is_a(carried, structure.Known) and structure.same_known(value, carried.value):
            return carried
        given = unification.structure_of(session, value, PLAIN)
        if is_a(carried, structure.Known):
            first = unification.structure_of(session, slot.init, PLAIN)
            wider = unification.unify(session, first, given, PLAIN)
            if is_a(wider, structure.Known):
                wider = unification.carried(session, given, PLAIN)
        elif unification.fits(session, given, carried, PLAIN):
            return carried
        else:
            wider = unification.unify(session, carried, given, PLAIN)
        wider = unification.require_few(session, wider)
        self._require_carried(wider, f"'{slot.label}' of a recursive call of {self.function}() is")
        return wider

    def finish(self) -> Any:
        """Record the Operator where the trace stands; what the first call gives.

        Raises:
            PathEnds: It gives nothing: every path of the body raises.
        """
        session, path = self.session, self.path
        before = session.graph.used_up
        new = (replace(used, when=ALWAYS, taken={}) for used in path.used_up if used not in before)
        session.graph.used_up = (*before, *new)
        block = path.scope.block
        if self.results is None:  # every path raises
            self.results = structure.Known(None)
        if path.ended:
            block.yields.extend([UNDEF] * structure.width(self.results))
        else:
            with path.inside(session):
                block.yields.extend(flattening.lower(session, path.result, self.results, PLAIN))
        values = [slot.init for slot in self.slots]
        operands = [one for slot in self.slots for one in flattening.lower(session, slot.init, slot.carried, PLAIN)]
        value = self._call("recursion", operands, values, [block])
        if path.ended:
            raise PathEnds()
        return value

    def _call(self, operator: str, operands: Sequence[Any], values: Sequence[Any], blocks: Sequence[Block] = ()) -> Any:
        session, results = self.session, self.results
        assert results is not None
        location = self.location if blocks else session.location()
        outputs = session.emit(
            operator, operands, None, structure.types_of(session, results), blocks=blocks,
            attrs={"name": self.name}, location=location)  # fmt: skip
        older = self._gives.known(outputs)
        made = dict(older)
        value = flattening.lift(session, results, iter(self._gives.variables(outputs)), PLAIN, made)
        new = [tensor for var, tensor in made.items() if var not in older]
        self._gives.note(new, list(leaves(value, results)), arguments=False)
        given = [storage for one in self.shares for storage in self._storages(one, values)]
        for tensor in new:
            storage = session.info(tensor).storage
            note_overlap(storage, _REASON)
            for other in given:
                note_unknown_alias(storage, other, _REASON, location)
        return value

    def _storages(self, one: int | Storage, values: Sequence[Any]) -> Iterator[Storage]:
        if is_a(one, Storage):
            yield one
        else:
            for tensor in _tensors(values[one], self.slots[one].carried):
                yield self.session.info(tensor).storage

    # -- what is refused -----------------------------------------------------------------------------------------

    def error(self, summary: str, hint: str = _WAY_OUT, location: Location | None = None) -> Exception:
        """D2S270."""
        place = location or self.called_at or self.session.location()
        return self.session.error(summary, hint=hint, code="D2S270", location=place)

    def _require_carried(self, s: structure.Structure, what: str) -> None:
        """Refuse what Variables cannot carry from one call to another: objects that each call makes."""
        if is_a(s, structure.Known):
            if not self._is_same_in_all_calls(s.value):
                raise self.error(f"{what} a {type(s.value).__name__} that each call makes",
                                 hint="Hand on tensors, numbers, and tuples of them.")
        elif is_a(s, (structure.Array, structure.Reference)):
            raise self.error(f"{what} a list whose length only a run knows",
                             hint="Hand on tensors, numbers, and tuples of them.")
        elif is_a(s, structure.Options):
            for one in s.options:
                if is_a(one, (structure.Sequence, structure.Fields)) and issubclass(_kind(one), (list, dict)):
                    raise self.error(f"{what} a {_kind(one).__name__} in some calls only",
                                     hint="Hand on tensors, numbers, and tuples of them.")
                self._require_carried(one, what)
        elif is_a(s, (structure.Sequence, structure.Fields)):
            for one in s.items:
                self._require_carried(one, what)

    def _is_same_in_all_calls(self, value: Any) -> bool:
        if value is None or is_plain(value) or is_a(value, (torch.nn.Module, type, ModuleType)):
            return True
        if is_a(value, (tuple, frozenset)):
            return all(map(self._is_same_in_all_calls, value))
        if is_a(value, BuiltinFunctionType) and is_a(value.__self__, (ModuleType, type, type(None))):
            return True
        if is_a(value, (torch.Tensor, Staged, structure.Choice)):
            return outside(self.session, self._older.storages, value)
        return self._older.has(value) or id(value) in self.session.objects.externals

    def _require_no_changes(self) -> None:
        """Refuse an activation that changes what is older than itself: each is one of many, in whatever order."""
        path = self.path
        for change in path.leaf_changes:
            raise change.error(self.session)
        for place in self._older.places(path):
            raise self._changes(place)
        for storage, value in self._older.written(path):
            raise self.error(f"{self.function}(), which calls itself, writes in place to {self._said(storage)}, "
                             "which is older than the call", hint="Write out of place, and give the new tensor as a "
                             "result.", location=written_at(path.scope.block, value))  # fmt: skip
        for op in path.scope.block.walk():
            if op.name == "gradients":
                raise self.error(f"{self.function}(), which calls itself, asks for gradients", location=op.location,
                                 hint="Ask for them outside, of what the function gives.")

    def _require_state(self) -> None:
        """Refuse a call inside that finds another Python state than the first call did, also if that is put back."""
        for place, before in self.session.journal.frames[self._frame].items():
            now = held(place)
            same = same_items(now, before) if place.kind == "content" else structure.same_known(now, before)
            if not same and not self._older.is_new(place):
                raise self._changes(place)

    def _said(self, storage: Storage) -> str:
        """How the user would call some memory."""
        named = [(slot.label, slot.init) for slot in self.slots]
        named += [(name, cell_value(cell)) for name, cell in self._variables]
        for name, value in named:
            if any(self.session.info(one).storage is storage for one in _tensors_in(value)):
                return f"'{name}'"
        label = storage.label or storage.first.hint
        return f"'{label}'" if label else "a tensor"

    def _changes(self, place: Place) -> Exception:
        names = [name for name, cell in self._variables if cell is place.owner]
        what = f"the variable '{names[0]}' of the function around it" if names else place.describe()
        return self.error(f"{self.function}(), which calls itself, stores to {what}, which is older than the call",
                          hint="Hand it on as an argument, and give it back as a result.",
                          location=self.session.journal.first_stores.get(place))


_NO_NAMES = NoNames()
"""A call has local variables of its own."""


def _kind(s: structure.Sequence | structure.Fields) -> type:
    return s.kind if is_a(s, structure.Sequence) else s.cls


def _tensors(value: Any, carried: structure.Structure) -> list[torch.Tensor]:
    """The tensors of a value that Variables carry, each once."""
    found = {id(tensor): tensor for tensor, _ in tensor_pairs(value, value, carried)}
    return list(found.values())


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """A tensor, or those in a tuple."""
    if is_a(value, torch.Tensor):
        yield value
    elif is_a(value, tuple):
        for item in value:
            yield from _tensors_in(item)


__all__ = ["Argument", "Recursion", "begin", "open_recursion"]
