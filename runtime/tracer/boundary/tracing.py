"""The boundary: what goes into a Program, what comes out, and what it changes in the caller's world.

``flatten`` takes a call's arguments apart, ``trace`` makes the Program and says what belongs to a call of it. How it is
called is the same for live functions and loaded files, and stands in ``runtime/calling``.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import collector, recursion_limit, torch_internals
from runtime.errors import Dy2StaticError, TraceError
from runtime.ir import Location, Operator, Program, Variable, Write
from runtime.ir.template import KeyPath
from runtime.ir.views import View
from runtime.kinds import is_a
from runtime.tracer.ambient import catching, contents, one_call, state
from runtime.tracer.ambient.calls import Ahead, Findings, Restart, Undecided
from runtime.tracer.ambient.leaked import leaked
from runtime.tracer.ambient.objects import own_items
from runtime.tracer.ambient.unasked import reader
from runtime.tracer.boundary import identifiers, told
from runtime.tracer.boundary.finished import require_users_own
from runtime.tracer.boundary.results import Outputs
from runtime.tracer.control.branches import PathEnds
from runtime.tracer.memory import cached_results, host_memory
from runtime.tracer.memory.hung import Question
from runtime.tracer.memory.inputs import LiveParameter, SharedBase
from runtime.tracer.memory.outside_graphs import AskedGradient
from runtime.tracer.numbers import number_arguments
from runtime.tracer.numbers.number_arguments import NeedsGradient
from runtime.tracer.python_state import waiting
from runtime.tracer.python_state.facts import Fact
from runtime.tracer.python_state.guards import Guard
from runtime.tracer.python_state.journal import Place, answers_besides, ordered_space
from runtime.tracer.recording import faults, hook_calls, hooked_tensors, leaf_gradients, made_generators
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.leaf_gradients import Gradient, LeafHooks, Retaining
from runtime.tracer.recording.raising import chain, must_run, stage_raise
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.recording.session import Session
from runtime.tracer.values import containers, copied_items, open_lists, open_values, structure
from runtime.tracer.values.arguments import Arguments, HoldsItself, flatten
from runtime.tracer.values.open_generators import StandIn, require_alone

trace_lock = threading.RLock()
"""Held while a Program is traced (tracing patches torch process-wide); running one takes no lock."""

trace_contexts: list[Callable[[Session], Any]] = []
"""Context managers entered around every trace: the converter installs its patches here."""


@dataclass
class Effect:
    """A store to the caller's Python state that every run repeats: ``tree`` goes to ``place``."""

    place: Place
    tree: Any
    path: tuple[Any, ...] | None = None
    """For a container among the arguments: where to find the caller's."""
    location: Location | None = None
    target: Variable | None = None
    """The input, for an attribute of a tensor among the arguments."""
    placed: bool = False
    """Whether it is a gradient that the end of a backward pass put there."""


@dataclass
class Traced:
    """A Program with what a live call needs beside it."""

    program: Program
    live: list[LiveParameter]
    guards: tuple[Guard, ...]
    effects: list[Effect]
    classes: dict[str, Any]
    raised: dict[str, type[BaseException]]
    views: dict[int, View]
    """By yield position: results that alias the caller's memory."""
    bases: list[tuple[int, SharedBase]] = field(default_factory=list)
    """Inputs after the arguments' tensors and open numbers: the memory that several arguments share, and one of them
    by position."""
    same: dict[int, KeyPath] = field(default_factory=dict)
    """By identity of a subtree of an output tree: the path of the argument that it is."""
    kept: dict[int, Any] = field(default_factory=dict)
    """By identity of a subtree: the container from before the trace that it is."""
    facts: list[Fact] = field(default_factory=list)
    """Inputs after those: numbers outside the arguments, read at each call."""
    leaves: dict[int, bool] = field(default_factory=dict)
    """By position of an argument's tensor: whether it has to be a leaf of autograd's graph, where the trace asked."""
    uses: list[one_call.Use] = field(default_factory=list)
    """Calls of cached functions that the trace made: each run uses the same entries of the caches."""
    asked: dict[int, list[Question]] = field(default_factory=dict)
    """By position of an argument's tensor: what else the trace asked it, and the answers."""
    whole: dict[int, Any] = field(default_factory=dict)
    """Containers among the arguments, by number, that are these very objects: something outside leads to them."""

    asks_gradients: bool = False
    """Whether the function asks if gradients are enabled, or what depends on it."""
    asked_settings: frozenset[str] = frozenset()
    """Settings of PyTorch that the function asks for, or what depends on them, by name."""
    asks_needs: bool = False
    """Whether the function may do something else where other parameters need a gradient."""
    no_leaves: frozenset[int] = frozenset()
    """By position: arguments' tensors that may be no leaves that need a gradient, as they are written; where the calls
    are still to come."""
    ends_in: BaseException | None = None
    """What PyTorch raises in every run, as the function asks what it does not do for such arguments."""
    generators: list[tuple[int, StandIn]] = field(default_factory=list)
    """What the Program draws from in place of generators among the open values, by their positions there."""
    adding: list[tuple[Place, int]] = field(default_factory=list)
    """Lists from outside that each run changes, with how many items they have to have."""

    tells_apart: bool = False
    """Whether it matters which of the caller's tensors are one, or share memory: some are written, or gradients of them
    are computed."""
    gradients: Sequence[AskedGradient] = ()
    """Those that the function asks for by the caller's tensors: each call is asked what these were computed of."""
    functions: dict[str, Any] = field(default_factory=dict)
    """Hooks of tensors that backward calls, by their names in the Program."""

    def parameters(self) -> list[torch.Tensor]:
        """The live tensors behind the Program's parameters, as they are now."""
        return [live_tensor(live) for live in self.live]

    def inputs(self, arguments: Arguments) -> list[Any]:
        """What the Program's inputs are for a call."""
        numbers = open_values.inputs(arguments) if arguments.opened else ()
        bases = (base.tensor(arguments.tensors[index]) for index, base in self.bases)
        return [*arguments.tensors, *numbers, *bases, *(fact.tensor() for fact in self.facts)]


def live_tensor(live: LiveParameter) -> torch.Tensor:
    """The tensor that stands behind a Program parameter now."""
    if live.owner is None:
        return live.real
    owner, name = live.owner, live.attribute
    if is_a(owner, torch.nn.Module):
        for slot in (owner._parameters, owner._buffers):
            if name in slot:
                return slot[name]  # type: ignore[return-value]
    return reader(owner)(owner, name)


def trace(
    function: Callable[..., Any],
    arguments: Arguments,
    *,
    name: str,
    dynamic: dict[str, frozenset[int]] | None = None,
    call: Callable[[Callable[..., Any], dict[str, Any]], Any] | None = None,
    varying: frozenset[Place] = frozenset(),
    apart: dict[str, frozenset[int]] | None = None,
    for_one_call: bool = True,
    ahead: Ahead = Ahead(),  # noqa: B008  # it is never changed
) -> Traced:
    """Run ``function`` once on fake tensors and return its Program.

    Args:
        function: Called with the rebuilt arguments (by ``call``, default: as keywords).
        arguments: The call's arguments, taken apart by ``flatten``.
        name: The Program's name.
        dynamic: For an input's label, its dimensions whose size is not fixed.
        varying: Places outside the arguments whose plain number is read at each call, not fixed.
        apart: Those of ``dynamic`` for whose sizes 0 and 1 the caller has other Programs.
        for_one_call: Whether a Program for this call alone is of use, as the function does what no run could repeat.
        ahead: What is left open, where the Program is for calls that come later.

    Raises:
        Undecided: What the function does depends on which inputs need a gradient, and ``ahead`` lets it ask.
        TraceError: Something in the function has no static meaning; the error is located in the user's source.
    """
    known = Findings()
    flagged: list[tuple[torch.Tensor, bool]] = []
    others = identifiers.Others()
    with trace_lock, recursion_limit.room(), collector.eased(), _put_back(flagged):
        while True:
            one_call.require_repeatable()
            one_call.put_back_written()
            session = Session(name)
            session.call.known, session.call.varying, session.sizes.apart = known, varying, apart or {}
            session.call.may_be_for_one_call, session.call.ahead, session.call.flagged = for_one_call, ahead, flagged
            try:
                session.call.unlike = others.numbers
                with faults.guarded(session):
                    traced = _trace_once(session, function, arguments, dynamic or {}, call)
                    shown = (traced.program, traced.program.output, [effect.tree for effect in traced.effects])
                    if others.agree(session, shown):
                        return traced
            except (Undecided, Dy2StaticError):
                one_call.put_back_written()
                raise
            except Restart as restart:
                wider = known.and_also(restart.known)
                if wider == known:
                    raise AssertionError("tracing again with what is known settled nothing") from restart
                known = wider


@contextlib.contextmanager
def _put_back(flagged: list[tuple[torch.Tensor, bool]]) -> Iterator[None]:
    """Where no Program comes of it, tensors from outside need gradients as before."""
    try:
        yield
    except BaseException:
        for tensor, before in reversed(flagged):
            tensor.requires_grad_(before)
        raise


def _require_modes(session: Session, before: dict[str, Any]) -> None:
    """Refuse a function that leaves PyTorch in another mode than it found it in: no run of the Program would.

    Raises:
        TraceError: The grad mode, autocast or a setting of ``torch.backends`` differs now.
    """
    changed = torch_internals.changed_modes(before)
    if changed:
        torch_internals.set_ambient_modes(before)
        raise session.error(
            f"{changed[0]} is changed inside a converted function, and stays so after it",
            hint="Use a with statement around what the setting is for, or change it outside.", code="D2S214")


def _trace_once(
    session: Session,
    function: Callable[..., Any],
    arguments: Arguments,
    dynamic: dict[str, frozenset[int]],
    call: Callable[[Callable[..., Any], dict[str, Any]], Any] | None,
) -> Traced:
    with torch_internals.fake_only_metadata():
        fakes = [
            session.inputs.add_input(real, label, dynamic.get(label, frozenset()))
            for real, label in zip(arguments.tensors, arguments.labels)
        ]
        given = [session.inputs.as_given(fake) for fake in fakes]
        opened = open_values.enter(session, arguments)
    session.inputs.join_shared_inputs(arguments.tensors, arguments.labels)
    whole = session.call.known.whole
    try:
        bound, built = arguments.rebuild(given, whole, opened)
    except HoldsItself:
        raise session.error(
            "an argument is a tuple, or an object of a class of one or of a dict, that holds itself", code="D2S228",
            hint="Let a list, a dict or a dataclass lead back to it.") from None
    open_values.require_no_whole(arguments, whole)
    for number, (container, path) in enumerate(built):
        session.objects.externals[id(container)] = (container, path)
        if path is None:
            session.guards.pin(container)
            continue
        original = arguments.containers[number]
        session.objects.originals[id(original)] = session.objects.copies[id(container)] = number
        if is_a(container, set) and list(container) != list(original):  # the copy has another order
            raise Restart(Findings(whole=frozenset((number,))))
        if is_a(container, (list, dict)):
            session.journal.note_content(container)
    for value, path in arguments.by_content():
        session.objects.given[id(value)] = (value, path)
    for value in _iterators(bound, set()):
        session.objects.externals[id(value)] = (value, None)
    before = state.enter(session)
    result: Any = None
    raised = ended = False
    ends_in: BaseException | None = None
    try:
        for place in session.call.varying:
            if place.kind == "added" and id(place.owner) not in session.call.known.looked_at:
                open_to_more(session, place.owner)
        with contextlib.ExitStack() as stack:
            for context in trace_contexts:
                stack.enter_context(context(session))
            stack.enter_context(torch_internals.quiet_shapes())
            stack.enter_context(torch_internals.without_autocast_cache())
            stack.enter_context(torch_internals.below_autograd())
            stack.enter_context(Interceptor(session))
            stack.enter_context(Recorder(session))
            modes = torch_internals.ambient_modes()
            try:
                result = call(function, bound) if call is not None else function(**bound)
                if session.exceptions.escape is not None:
                    raise catching.unsupported(session)
            except PathEnds:
                raised = True
            except BaseException as error:
                if not faults.comes_of_code(error):
                    raise
                faults.require_users(session, error)
                waiting.require_none(session)
                if not must_run(session, error):
                    for one in chain(error):
                        session.journal.keep(one)
                    ended = True
                    raise
                stage_raise(session, error)
                raised = True
                ends_in = error if faults.is_torchs(error) else None
            waiting.require_none(session)
            _require_modes(session, modes)
            session.sizes.collect_of_inputs()
            outputs = Outputs(session)
            tree = outputs.tree(None if raised else result)
            effects = _effects(session, outputs)
            outputs.require_one_memory()
            writes = _writes(session, outputs)
            leaf_gradients.require_no_hooks(session, outputs.values)
            hook_calls.require_settled(session, outputs.values)
            hooked_tensors.dissolve(session)
            copied_items.require_references(session)
            host_memory.require_apart(session)
            cached_results.require_read_only(session)
            told.require_unseen(session)
            made_generators.require_not_drawn(session)
            outputs.pin(effect.place.owner for effect in effects)
            session.inputs.guard_unread()
    except torch_internals.shape_errors() as error:
        raise session.undecidable() from error
    except NeedsGradient as error:
        raise number_arguments.refusal(session) from error
    finally:
        try:
            for place, old in reversed(session.journal.frames[0].items()):  # an object may have got another __dict__
                place.put_back(old)
            session.journal.frames[0].put_orders()
        finally:
            state.enter(before)
            session.fake_mode.finished = leaked
        if ended:
            one_call.settle(session.call.uses)
    program = session.program
    program.block.args = [*(i.var for i in program.inputs), *(p.var for p in program.params)]
    program.block.yields = outputs.values
    open_values.require_unread(session, opened)
    stand_ins = [(index, one) for index, one in enumerate(opened) if is_a(one, StandIn)]
    open_lists.require_only_read(session, opened, writes)
    require_alone(session, [one for _, one in stand_ins], [*outputs.classes.values(), *outputs.kept.values()])
    require_users_own((tree, *(effect.tree for effect in effects)), (*outputs.classes.values(), *outputs.kept.values()))
    program.output = tree
    program.writes = writes
    return Traced(
        program,
        session.inputs.live,
        session.guards.freeze(),
        effects,
        outputs.classes,
        session.exceptions.raised_types,
        outputs.views,
        [(arguments.labels.index(base.label), base) for base in session.inputs.bases],
        outputs.same,
        outputs.kept,
        [fact for fact, _ in session.call.facts.values()],
        {
            position: session.inputs.leaves[given.var]
            for position, given in enumerate(program.inputs[: len(arguments.tensors)])
            if given.var in session.inputs.leaves
        },
        session.call.uses,
        {
            position: list(session.inputs.asked[given.var].values())
            for position, given in enumerate(program.inputs[: len(arguments.tensors)])
            if given.var in session.inputs.asked
        },
        {number: container for number, (container, path) in enumerate(built) if path is None},
        session.outside.asks_gradients,
        frozenset(session.outside.asked_settings),
        session.inputs.asks_needs,
        frozenset(position for position, given in enumerate(program.inputs) if given.var in session.inputs.no_leaves),
        ends_in,
        stand_ins,
        session.call.adding,
        bool(writes or session.graph.gradients_asked),
        session.inputs.gradients,
        dict(session.graph.hook_functions),
    )


def open_to_more(session: Session, owner: list[Any]) -> None:
    """Let a list from outside hold what it held before as one thing at which nothing may look, until the trace ends."""
    session.objects.externals[id(owner)] = (owner, None)
    session.journal.note_content(owner)
    owner[:] = [structure.Before(owner)]
    session.containers.has_growing = True


def _effects(session: Session, outputs: Outputs) -> list[Effect]:
    """Stores to objects of the caller that must happen at each run."""
    effects = []
    for place, old in _stores(session):
        if place.kind == "item" and Place("content", place.owner) in session.journal.frames[0]:
            continue  # the number of a fact, in a container that is stored as a whole
        if is_a(place.owner, LeafHooks):
            continue
        external = session.objects.externals.get(id(place.owner))
        whose = place.owner.tensor if is_a(place.owner, (Gradient, Retaining)) else place.owner
        target = session.inputs.own_variable(whose) if is_a(whose, torch.Tensor) else None
        if whose is not place.owner and target is None:  # of a tensor made inside
            continue
        where = Place(place.kind, whose, place.name)
        if external is None and target is None and place.kind not in ("global", "context"):
            continue
        new = place.get()
        before = structure.before(new) if place.kind == "content" else None
        if before is not None:
            if before.added:
                outputs.location = session.journal.first_stores.get(Place("content", before.added))
                effects.append(Effect(Place("added", place.owner), outputs.tree(before.added), None, outputs.location))
            continue
        changed = place.kind == "content" and containers.several(place.owner) is not None
        if place in session.call.facts and new is session.call.facts[place][1]:
            continue
        if changed:
            new = containers.content(place.owner)
        elif new is old or structure.same_known(new, old) or (place.kind == "content" and _same_content(new, old)):
            _guard_unchanged(session, place, old, external)
            continue
        path = external[1] if external is not None else None
        if place.kind == "content" and path is None:
            with session.journal.as_before(old):
                session.guards.add(("content", id(place.owner)), f"the content of {place.describe()}", place.get, old)
            if type(place.owner) is list:
                session.call.adding.append((Place("added", place.owner), len(old)))
        outputs.location = session.journal.first_stores.get(place)
        placed = is_a(place.owner, Gradient) and new is not None and new is place.owner.placed
        effects.append(Effect(where, outputs.tree(new), path, outputs.location, target, placed))
    return effects + _orders(session, effects, outputs)


def _orders(session: Session, effects: list[Effect], outputs: Outputs) -> list[Effect]:
    """What puts the attributes of the caller's objects in order, where storing to them alone does not."""
    found = []
    frame = session.journal.frames[0]
    for owner in frame.owners():
        external = session.objects.externals.get(id(owner))
        if external is None:
            continue
        session.journal.require_ordered(owner, f"a {type(owner).__name__} from outside is changed")
        before, after = frame.orders[id(owner)], tuple(ordered_space(owner) or ())
        stored = [effect.place.name for effect in effects
                  if effect.place.kind == "attribute" and effect.place.owner is owner]  # fmt: skip
        if [name for name in dict.fromkeys((*before, *stored)) if name in after] != list(after):
            stay = _staying(before, after)
            place = Place("order", owner)
            found.append(Effect(place, outputs.tree(after[stay:]), external[1], outputs.location))
    return found


def _staying(before: Iterable[str], after: Iterable[str]) -> int:
    """How many of the first names are in the order that they had."""
    rest = iter(before)
    return sum(1 for _ in itertools.takewhile(lambda name: name in rest, after))


def _guard_unchanged(session: Session, place: Place, old: Any, external: tuple[Any, Any] | None) -> None:
    """A store of what was there already is none, as long as that is there."""
    if place.kind == "item" or (external is not None and external[1] is not None):  # the call's own: part of its key
        return
    if place.kind == "content":
        with session.journal.as_before(old):
            session.guards.add(("content", id(place.owner)), f"the content of {place.describe()}", place.get, old)
        return
    read = (id(place.owner), "cell" if is_a(place.owner, types.CellType) else place.name)
    elsewhere = place.kind == "attribute" and answers_besides(place.owner, place.name)
    if not elsewhere and session.guards.has(read) or session.inputs.is_found_at(old, place.owner, place.name):
        return
    with session.journal.as_before(old):
        session.guards.add((*read, "before"), place.describe(), place.get, old)
        session.guards.pin(old)


def _stores(session: Session) -> Iterator[tuple[Place, Any]]:
    """The places that were stored to, with what they held, and those that building trees of others adds."""
    stores, count = session.journal.frames[0], 0
    while count < len(stores):
        some = list(itertools.islice(stores.items(), count, None))
        count += len(some)
        yield from some


def _iterators(value: Any, seen: set[int]) -> Iterator[Any]:
    """Iterators among the arguments; ``seen``: containers that need no second look."""
    if is_a(value, (list, tuple, dict)) and id(value) not in seen:
        seen.add(id(value))
        for item in own_items(value):
            yield from _iterators(item, seen)
    elif contents.is_iterator(value):
        yield value


def _same_content(new: Any, old: Any) -> bool:
    if is_a(new, list):
        return len(new) == len(old) and all(structure.same_known(a, b) for a, b in zip(new, old))
    if is_a(new, dict):
        return list(new) == list(old) and all(structure.same_known(new[key], old[key]) for key in new)
    return bool(new == old)


def _writes(session: Session, outputs: Outputs) -> list[Write]:
    """Memory of the caller that the Program wrote."""
    writes = []
    for storage in session.storages.snapshot():
        if storage.origin is not None and storage.value is not storage.origin:
            value = storage.value
            if not storage.in_graph and (session.inputs.needs_gradient(storage.origin) or storage.unnoticed):
                (value,) = session.emit("aten.detach.default", [value], types=[value.type])
            writes.append(Write(storage.origin, outputs.leaf(value).index))
    return writes


def operators(program: Program) -> Iterator[Operator]:
    """Every Operator of a Program."""
    return program.block.walk()


__all__ = ["Arguments", "Effect", "Traced", "TraceError", "flatten", "trace"]
