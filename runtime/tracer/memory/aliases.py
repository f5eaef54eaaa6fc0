"""Memory that is other memory on some paths only, and what a write to either does to the other.

After ``if c: b = a`` ``else: b = x * 2`` the tensor ``b`` is ``a`` when ``c`` held. The join gives ``b`` a storage of
its own and an ``Alias`` to ``a``'s, with a flag that says at run time whether they are one. Nothing is recorded for it
until one of them is written; then the other is brought up to date under that flag.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import torch

from runtime.ir import Block, Operand, TensorType, Type, Variable, leaves
from runtime.kinds import is_a
from runtime.tracer.memory.conditions import ALWAYS, NEVER, Deferred, PathCondition, any_of, flagged, when
from runtime.tracer.memory.deferred import needed
from runtime.tracer.memory.unknown_aliasing import require_certain

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import RecordedStep, Storage, TensorInfo
    from runtime.tracer.recording.session import Session

N = TypeVar("N")
_Edges: TypeAlias = "Callable[[Storage], Iterable[tuple[Storage, Alias]]]"
_Reaches: TypeAlias = "Callable[[Storage], PathCondition]"


@dataclass(eq=False)
class Alias:
    """Where ``when`` holds, ``dependent``'s content is what ``steps`` show of ``base``'s."""

    dependent: weakref.ref[Storage]
    base: Storage
    steps: tuple[RecordedStep, ...]
    when: PathCondition
    pending: tuple[Deferred, ...] = ()
    """Values that ``steps`` read."""


def add(
    dependent: Storage, base: Storage, steps: tuple[RecordedStep, ...], when: PathCondition,
    pending: tuple[Deferred, ...] = (),
) -> None:
    """Note that ``dependent`` is ``steps`` of ``base`` where ``when`` holds."""
    alias = Alias(weakref.ref(dependent), base, steps, when, pending)
    dependent.aliases.append(alias)
    base.dependents.append(weakref.ref(alias))


@dataclass(frozen=True, eq=False)
class Root:
    """Memory that a tensor is a view of where ``when`` holds; ``through``: what lies between."""

    storage: Storage
    steps: tuple[RecordedStep, ...]
    when: PathCondition = ALWAYS
    pending: tuple[Deferred, ...] = ()
    through: tuple[Storage, ...] = ()


def is_outside(storage: Storage, outside: Container[Storage]) -> bool:
    """Whether memory exists outside a construct: it was there before, or is the caller's, met only now."""
    return storage in outside or storage.origin is not None


def roots(info: TensorInfo, outside: Container[Storage]) -> Iterator[Root]:
    """The memory a tensor may be a view of; of what exists ``outside`` only the nearest."""
    from runtime.tracer.memory.storage_table import compose

    todo = [Root(info.storage, info.steps)]
    while todo:
        root = todo.pop()
        yield root
        if is_outside(root.storage, outside):
            continue
        for alias in root.storage.aliases:
            if alias.base is not root.storage and alias.base not in root.through:
                todo.append(
                    Root(
                        alias.base,
                        compose(alias.steps, root.steps),
                        root.when & alias.when,
                        (*root.pending, *alias.pending),
                        (*root.through, root.storage),
                    )
                )


_WAYS = 200
"""So many ways from a tensor to memory that it may be a view of are told apart."""


def few_roots(info: TensorInfo, outside: Container[Storage]) -> tuple[list[Root], list[Storage]]:
    """The roots of a tensor; where there are too many ways to them, none, and the memory they lead to."""
    found = list(itertools.islice(roots(info, outside), _WAYS + 1))
    return (found, []) if len(found) <= _WAYS else ([], reached(info, outside))


def reached(info: TensorInfo, outside: Container[Storage]) -> list[Storage]:
    """The memory that a tensor may be a view of, however many ways lead there; of what exists ``outside`` only the
    nearest."""
    found: dict[Storage, None] = {info.storage: None}
    todo = [info.storage]
    while todo:
        storage = todo.pop()
        for alias in () if is_outside(storage, outside) else storage.aliases:
            if alias.base not in found:
                found[alias.base] = None
                todo.append(alias.base)
    return list(found)


def has_history(session: Session, storage: Storage) -> bool:
    """Whether memory of detached tensors has a history of its own: there are tensors that have it."""
    return bool(storage.aliases) and any(
        one.storage is storage and one.requires_grad for one in session.known_tensors())


def of_roots(session: Session, info: TensorInfo, var: Variable, type: Type) -> Variable:
    """What a tensor made inside holds, ``var``, for a caller: taken of the memory that it is a view of, if it is one.

    A write brought all of it up to date by copies. The caller is to see that it is one memory. (Where it is the very
    tensor, results know that by its identity.)
    """
    found, _ = few_roots(info, ())
    inside = [root for root in found[1:]
              if root.steps and root.storage.origin is None and not root.storage.outdated
              and session.visible(root.storage.value)]  # fmt: skip
    storages = [info.storage, *(root.storage for root in inside)]
    if all(storage.value is storage.first for storage in storages):
        return var
    apart = info.requires_grad or has_history(session, info.storage)
    for root in sorted(inside, key=lambda root: len(root.through)):
        if apart and any(step.detaches or session.is_apart(step) for step in root.steps):
            continue  # it has a history of its own
        for late in root.pending:
            late.demand(session)
        flag = session.operand(root.when.staged(session))
        if flag is True:
            var = session.replay(root.storage.value, root.steps, type)
        elif flag is not False:
            with session.open("cond") as taken:
                taken.block.yields.append(session.replay(root.storage.value, root.steps, type))
            (var,) = session.emit("cond", [flag], None, [type], hints=[var.hint],
                                  blocks=[taken.block, Block(yields=[var])])  # fmt: skip
    return var


@dataclass(frozen=True, eq=False)
class Link(Generic[N]):
    """Two tensors, by number, are one memory where ``when`` holds: ``one`` is ``steps`` of ``other``."""

    one: N
    other: N
    steps: tuple[RecordedStep, ...]
    when: PathCondition
    pending: tuple[Deferred, ...]


def links(members: Sequence[tuple[N, Root]]) -> tuple[list[Link[N]], list[tuple[N, N]]]:
    """How tensors that are views of one memory are views of each other, and pairs where neither shows all of it."""
    for number, root in members:
        if not root.steps and root.when.always:  # this one always is that memory
            hub = number
            return [Link(n, hub, r.steps, r.when, r.pending) for n, r in members if n != hub], []
    found: list[Link[N]] = []
    unknown: list[tuple[N, N]] = []
    members = _merged(members)
    for position, (a, mine) in enumerate(members):
        for b, theirs in members[position + 1 :]:
            if a == b or any(storage in theirs.through for storage in mine.through):
                continue
            when, pending = mine.when & theirs.when, (*mine.pending, *theirs.pending)
            if not mine.steps:
                found.append(Link(b, a, theirs.steps, when, pending))
            elif not theirs.steps:
                found.append(Link(a, b, mine.steps, when, pending))
            else:
                unknown.append((a, b))
    return found, unknown


def _merged(members: Sequence[tuple[N, Root]]) -> list[tuple[N, Root]]:
    """The ways by which a tensor is all of the memory as one: there may be many, and pairs of them many more.

    What lies on all ways lies between; the others say nothing that the links found at what they share do not.
    """
    ways: dict[N, list[Root]] = {}
    for number, root in members:
        if not root.steps and not root.pending:
            ways.setdefault(number, []).append(root)
    merged: list[tuple[N, Root]] = []
    for number, root in members:
        if root.steps or root.pending:
            merged.append((number, root))
        elif ways.get(number):
            mine = ways.pop(number)
            through = tuple(storage for storage in root.through if all(storage in way.through for way in mine))
            merged.append((number, replace(root, when=any_of(way.when for way in mine), through=through)))
    return merged


def key(steps: Any) -> Any:
    """Something to compare and hash view chains, or parts of them, by."""
    from runtime.tracer.memory.storage_table import RecordedStep

    if is_a(steps, RecordedStep):
        return (steps.name, key(steps.args), key(steps.kwargs), steps.index, key(steps.modes), steps.location,
                steps.unnoticed)  # fmt: skip
    if is_a(steps, (list, tuple)):
        return tuple(map(key, steps))
    return steps if is_a(steps, Variable) else (type(steps), repr(steps))


def step_variables(steps: Sequence[RecordedStep]) -> list[Variable]:
    """The Variables that a view chain reads beside its source."""
    return [var for step in steps for var in (*leaves(step.args), *leaves(dict(step.kwargs)))]


def with_variables(steps: tuple[RecordedStep, ...], new: dict[Variable, Variable]) -> tuple[RecordedStep, ...]:
    """A view chain that reads other Variables."""

    def put(value: Any) -> Any:
        if is_a(value, Variable):
            return new.get(value, value)
        return type(value)(map(put, value)) if type(value) in (list, tuple) else value

    return tuple(
        replace(step, args=put(step.args), kwargs=tuple((key, put(value)) for key, value in step.kwargs))
        for step in steps
    )


# -- writes --------------------------------------------------------------------------------------------------------


def propagate(session: Session, written: Sequence[Storage]) -> None:
    """Bring memory up to date that may be the same as what was just written."""
    for touched in session.constructs.touched:
        touched.update(written)
    if not any(storage.aliases or storage.dependents for storage in written):
        return
    infos = session.known_tensors()
    observed = {id(info.storage) for info in infos}
    for source in written:
        for reached in _reached(session, source):
            require_certain(session, reached)
        connected = related(session, source)
        for touched in session.constructs.touched:
            touched.update(connected)
        shown = {s for s in connected if id(s) in observed or s.origin is not None}
        shown |= {alias.base for s in shown for alias in s.aliases if alias.steps}  # results are taken of it
        targets = [s for s in connected if s is not source and s in shown]
        for left in connected:
            left.outdated |= left is not source and left not in shown
        if targets:
            _Update(session, source, set(connected), infos).run(targets)


def related(session: Session, source: Storage) -> list[Storage]:
    """The storages that aliases connect with one, itself included."""
    return _closure(session, [source], lambda s: [*(alias.base for alias in s.aliases), *_dependents(s)])


def _reached(session: Session, source: Storage) -> list[Storage]:
    """The storages that a write to one may change."""
    above = _closure(session, [source], lambda storage: [alias.base for alias in storage.aliases])
    return _closure(session, above, _dependents)[1:]


def _dependents(storage: Storage) -> list[Storage]:
    found = [alias.dependent() for ref in storage.dependents if (alias := ref()) is not None]
    return [dependent for dependent in found if dependent is not None]


def _closure(session: Session, start: list[Storage], of: Callable[[Storage], list[Storage]]) -> list[Storage]:
    """What is reached from some storages, themselves first."""
    found = dict.fromkeys(start)
    todo = list(start)
    while todo:
        for other in of(todo.pop()):
            # One that is not visible belongs to a path, or to an attempt at a loop's body, that is over.
            if other not in found and session.visible(other.first):
                found[other] = None
                todo.append(other)
    return list(found)


def _closure_of(start: Storage, edges: _Edges) -> dict[Storage, None]:
    """What edges lead to, itself first."""
    found, todo = {start: None}, [start]
    while todo:
        for other, _ in edges(todo.pop()):
            if other not in found:
                found[other] = None
                todo.append(other)
    return found


class _Update:
    """One write's way to other memory: up to what the written storage is a view of, then down to the views of that.

    Memory that is two others at once is known to be so by aliases between those, so that one way up and one down finds
    all of it.
    """

    def __init__(self, session: Session, source: Storage, related: set[Storage], infos: list[TensorInfo]) -> None:
        self.session, self.source, self.related, self.infos = session, source, related, infos
        self.noticed = {source: not source.written[source.value].happened.never}
        """Whether PyTorch counts it as a write to each."""
        self.carrying: set[Storage] = set()
        """Storages that hold a history now; of those that no tensor shows any more nothing else tells."""
        self.up: dict[Storage, PathCondition] = {source: ALWAYS}
        """When each was reached on the way up."""
        self.same: dict[Storage, PathCondition] = {source: ALWAYS}
        """When each was reached at all."""
        self.reached: dict[Storage, PathCondition] = {source: ALWAYS}
        """When the write reached each storage, as far as the content has gone."""
        histories = [info for info in infos if info.storage is source and info.requires_grad]
        history = any_of(map(needed, histories)) if torch.is_grad_enabled() else NEVER
        self.arrived: dict[Storage, PathCondition] = {source: history}
        """When the history of what was written came to a storage."""
        self.behind: dict[Storage, PathCondition] = {}
        """When it reached a storage without that."""

    def run(self, targets: list[Storage]) -> None:
        """Update what is observed."""
        whole = not any(alias.steps for storage in self.related for alias in storage.aliases)
        if whole:
            for target in targets:
                condition = self._same(target)
                if not condition.never:
                    before, operand = target.value, condition.operand(self.session)
                    needs = any(info.storage is self.source and info.requires_grad for info in self.infos)
                    _copy(self.session, self.source, target, (), True, operand, self.infos, needs, True)
                    reached = when(operand) if is_a(operand, Variable) else ALWAYS
                    self._note(target, before, reached if self.noticed[self.source] else NEVER)
            return
        for target in targets:
            self._refresh(target)

    def _below(self, storage: Storage) -> Iterator[tuple[Storage, Alias]]:
        for ref in storage.dependents:
            alias = ref()
            dependent = alias.dependent() if alias is not None else None
            if alias is not None and dependent is not None and dependent in self.related:
                yield dependent, alias

    def _above(self, storage: Storage) -> Iterator[tuple[Storage, Alias]]:
        for alias in storage.aliases:
            if alias.base in self.related:
                yield alias.base, alias

    def _cycle(self, storage: Storage) -> list[Storage]:
        """A storage and what may be above it as well as below: where paths differ in which of two tensors is a view of
        the other, each is one of the other's, under conditions of their own."""
        reached = list(_closure_of(storage, self._above))[1:]
        if not any(other is storage for one in reached for other, _ in self._above(one)):
            return [storage]
        return [storage, *(one for one in reached if storage in _closure_of(one, self._above))]

    # Whole tensors: when each is the written one.

    def _up(self, storage: Storage) -> PathCondition:
        if storage not in self.up:
            self._conditions(self._cycle(storage), self.up, self._up, self._below)
        return self.up[storage]

    def _same(self, storage: Storage) -> PathCondition:
        if storage not in self.same:
            self._conditions(self._cycle(storage), self.same, self._same, self._above, self._up)
        return self.same[storage]

    def _conditions(
        self, members: list[Storage], known: dict[Storage, PathCondition], of: _Reaches, edges: _Edges,
        first: _Reaches | None = None,
    ) -> None:
        """Those of the members of a cycle: first what comes from outside, then around it."""
        for one in members:
            if one not in known:
                start = NEVER if first is None else first(one)
                outside = [of(other) & alias.when for other, alias in edges(one) if other not in members]
                known[one] = any_of((start, *outside))
        for _ in members[1:]:
            for one in members:
                inside = [of(other) & alias.when for other, alias in edges(one) if other in members]
                known[one] = any_of((known[one], *inside))

    # Views: the content goes from one to the next.

    def _raise(self, storage: Storage) -> PathCondition:
        """Bring a storage up to date with those below it; when any of those was reached."""
        if storage not in self.up:
            self._bring(self._cycle(storage), self.up, self._raise, self._below)
        return self.up[storage]

    def _refresh(self, storage: Storage) -> PathCondition:
        """Bring a storage up to date with all that may be the same; when any of that was reached."""
        if storage not in self.same:
            self._bring(self._cycle(storage), self.same, self._refresh, self._above, self._raise)
        return self.same[storage]

    def _bring(
        self, members: list[Storage], known: dict[Storage, PathCondition], of: _Reaches, edges: _Edges,
        first: _Reaches | None = None,
    ) -> None:
        """Bring the members of a cycle up to date: first with what is outside, then with each other."""

        def along(one: Storage, inside: bool) -> None:
            for other, alias in list(edges(one)):
                if (other in members) is inside:
                    known[one] |= self._along(alias, other, one, of(other))

        for one in members:
            if one not in known:
                known[one] = NEVER if first is None else first(one)
                along(one, False)
        for _ in members[1:]:
            for one in members:
                along(one, True)

    def _along(self, alias: Alias, source: Storage, target: Storage, reached: PathCondition) -> PathCondition:
        """Where the source was reached and the alias holds, the target gets what it holds now; when that is.

        A source that was not reached may hold what the target, which is the same memory, held before.
        """
        condition = flagged(reached & alias.when, self.session)
        if condition.never:
            return NEVER
        for late in alias.pending:
            late.demand(self.session)
        before = target.value
        operand = condition.operand(self.session)
        carries = source in self.carrying or any(i.storage is source and i.requires_grad for i in self.infos)
        noticed = self.noticed[source] and not any(step.unnoticed for step in alias.steps)
        up = target is alias.base
        _copy(self.session, source, target, alias.steps, up, operand, self.infos, carries, noticed)
        if carries and torch.is_grad_enabled() and not any(map(self.session.is_apart, alias.steps)):
            self.carrying.add(target)
        reaches = self.reached[source] & alias.when
        self.reached[target] = self.reached.get(target, NEVER) | reaches
        self.noticed[target] = self.noticed.get(target, False) or noticed
        self._leave_behind(alias, source, target, carries and not up)
        self._note(target, before, reaches if noticed else NEVER, self.behind.get(target, NEVER))
        return condition

    def _leave_behind(self, alias: Alias, source: Storage, target: Storage, carries: bool) -> None:
        """A view that was made without gradients does not get the history that its base has now; what was detached is
        none of it, and neither are views of that."""
        if any(step.detaches for step in alias.steps):
            return
        behind, arrived = self.behind.get(source, NEVER), self.arrived.get(source, NEVER)
        if carries and any(map(self.session.is_apart, alias.steps)):
            behind |= self.reached[source] & arrived
        elif not arrived.never:
            self.arrived[target] = self.arrived.get(target, NEVER) | (arrived & alias.when)
        if behind.never:
            return
        self.behind[target] = self.behind.get(target, NEVER) | (behind & alias.when)
        for info in self.infos:
            if info.storage is target and info.fixed and not info.requires_grad:
                info.requires_grad = info.grad_in_some_runs = True

    def _note(self, target: Storage, before: Variable, reached: PathCondition, behind: PathCondition = NEVER) -> None:
        from runtime.tracer.memory.storage_table import Write

        target.written[target.value] = Write(before, reached, behind)


def _copy(
    session: Session, source: Storage, target: Storage, steps: tuple[RecordedStep, ...], up: bool, flag: Operand,
    infos: list[TensorInfo], needs: bool, noticed: bool,
) -> None:  # fmt: skip
    """Where the flag holds, write the source's content into the target: ``up``: the source is ``steps`` of it.

    ``needs``: the content may have a history. ``noticed``: PyTorch counts it as a write.
    """
    location, modes = session.location(), session.modes()
    before, content = session.require_visible(target.value), session.require_visible(source.value)
    detached = any(map(session.is_apart, steps))
    if detached:
        modes = ("off", modes[1])
    without = detached or not torch.is_grad_enabled()
    shown = [info for info in infos if info.storage is target]
    history = without and (not shown or any(info.requires_grad for info in shown))

    def new() -> Variable:
        if not history and (not up or not steps):
            return content if up else session.replay(content, steps)
        what = content if up else session.replay(content, steps)
        onto = session.replay(before, steps) if up else before
        place = content.type if up else before.type  # what is copied is like the view
        sizes = _sizes(session, onto, content.type, place)
        for dim, size in enumerate(sizes):
            (what,) = session.emit("aten.slice.Tensor", [what, dim, 0, size], types=[TensorType(None, None)])
        sizes = _sizes(session, what, before.type, place)
        with session.open("update") as scope:  # the rest of the target stays, or its history does
            inner = session.new_variable(before.type, before.hint)
            scope.block.args.append(inner)
            onto = session.replay(inner, steps) if up else inner
            for dim, size in enumerate(sizes):
                (onto,) = session.emit("aten.slice.Tensor", [onto, dim, 0, size], types=[TensorType(None, None)])
            session.emit("aten.copy_.default", [onto, what], None, [before.type], modes=modes, location=location)
            scope.block.yields.append(inner)
        (result,) = session.emit(
            "update", [before], None, [before.type],
            hints=[before.hint], blocks=[scope.block], modes=modes, location=location,
            attrs={"repeats": True} if noticed else {"repeats": True, "unnoticed": True},
        )  # fmt: skip
        return result

    if flag is True:
        target.value = new()
    else:
        with session.open("cond") as taken:
            taken.block.yields.append(new())
        (target.value,) = session.emit(
            "cond", [flag], None, [before.type],
            hints=[before.hint], blocks=[taken.block, Block(yields=[before])], location=location,
        )  # fmt: skip
    target.in_graph |= source.in_graph and torch.is_grad_enabled() and not detached
    if needs and torch.is_grad_enabled() and not detached:
        histories = [info for info in infos if info.storage is source and info.requires_grad]
        in_some_runs = flag is not True or all(info.grad_in_some_runs for info in histories)
        for info in shown:
            if not info.detached:
                session.require_gradient(info, in_some_runs)


def _sizes(session: Session, like: Variable, type: Type, place: Type) -> list[Variable]:
    """The sizes of ``like``, which has the rank of ``place``, where a tensor of a type with unknown ones is copied."""
    if not is_a(type, TensorType) or type.shape is None or all(is_a(dim, int) for dim in type.shape):
        return []
    shape = place.shape if is_a(place, TensorType) and place.shape is not None else type.shape
    return [session.emit("scalar.size", [like, dim])[0] for dim in range(len(shape))]
