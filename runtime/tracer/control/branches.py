"""Tracing one path of a staged construct on its own: into a Block, from a snapshot, and back."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime import torch_internals
from runtime.errors import Dy2StaticError
from runtime.ir import Location, Variable
from runtime.ir.flow import Kind
from runtime.kinds import is_a
from runtime.ops.registry import STRUCTURAL
from runtime.tracer.ambient import catching
from runtime.tracer.ambient.calls import Restart
from runtime.tracer.control.path_state import (
    Names,
    PathCopies,
    PathExistence,
    PathHistories,
    PathLeaves,
    PathMemory,
    PathNames,
    PathPlaces,
    PathState,
    PathUsedUp,
)  # fmt: skip
from runtime.tracer.memory import cached_results
from runtime.tracer.memory.conditions import PathCondition
from runtime.tracer.memory.graph import UsedUp
from runtime.tracer.memory.storage_table import Snapshot, TensorInfo
from runtime.tracer.python_state import waiting
from runtime.tracer.python_state.journal import Frame, Place
from runtime.tracer.python_state.notes import noted, others, own_references
from runtime.tracer.recording import faults
from runtime.tracer.recording.leaf_changes import LeafChange
from runtime.tracer.recording.raising import stage_raise
from runtime.tracer.recording.session import Scope, Session
from runtime.tracer.values import tables, unjournaled


class PathEnds(BaseException):
    """A staged path ended in a ``raise``. Not an Exception, so that no handler in user code catches it."""


class _Together:
    """The local variables of a construct, and those of what runs inside it."""

    def __init__(self, parts: Sequence[Names]) -> None:
        self._parts = parts
        self.names = tuple(name for part in parts for name in part.names)

    def get(self) -> tuple[Any, ...]:
        return tuple(value for part in self._parts for value in part.get())

    def set(self, values: tuple[Any, ...]) -> None:
        for part in self._parts:
            part.set(tuple(values[: len(part.names)]))
            values = values[len(part.names) :]

    def holds(self, place: Place) -> bool:
        return any(part.holds(place) for part in self._parts)


def all_names(session: Session, names: Names) -> Names:
    """``names``, and those of the consumers that the generator around this construct hands its items to."""
    return _Together((names, *session.code.surrounding)) if session.code.surrounding else names


@dataclass(eq=False)
class Path:
    """What one path did, seen from outside: its scope, and what changed."""

    scope: Scope
    ended: bool
    """Whether it raised, so that nothing after it runs."""
    names: tuple[Any, ...]
    result: Any
    states: tuple[PathState, ...]
    """What belonged to it."""
    places: Frame
    storages: Snapshot
    """Values at the end of every storage alive then."""
    bare: dict[TensorInfo, PathCondition]
    """When views that were there before have no history at its end (see ``Graph.bare``)."""
    used_up: tuple[UsedUp, ...]
    """The gradients that have used up graphs at its end (see ``Graph.used_up``)."""
    leaf_changes: Sequence[LeafChange]
    """Tensors older than the path whose ``requires_grad`` it set."""
    held_in_lists: dict[int, Location | None]
    """The containers, by identity, of which lists that grow hold copies at its end."""
    existing: dict[int, tuple[tuple[Any], Mapping[Variable, frozenset[int]]]]
    """What was known at its end of the runs in which containers exist."""
    contents: dict[Place, Any] = field(default_factory=dict)
    """What the containers among the places' owners held at the end (see ``containers.content``)."""

    def held(self) -> Iterator[Any]:
        """The objects that it refers to."""
        yield from self.names
        yield self.result
        for place, value in self.places.items():
            if place.kind != "content":
                yield value
            elif is_a(value, (list, dict)):
                yield from dict.values(value) if is_a(value, dict) else value

    @contextlib.contextmanager
    def inside(self, session: Session) -> Iterator[None]:
        """Record at the path's end, with memory and Python state as they were there."""
        with contextlib.ExitStack() as stack:
            for state in self.states:
                stack.enter_context(state.again())
            stack.enter_context(session.reopen(self.scope))
            yield

    @contextlib.contextmanager
    def goes_on(self, session: Session) -> Iterator[None]:
        """Add to the path: what is recorded, and what is stored to Python state."""
        with self.inside(session):
            session.journal.open()
            stored: Frame | None = None
            try:
                yield
            finally:
                stored = session.journal.close()
        self.places.update(stored)


class Reachable:
    """What the user's frames can reach where the paths of a construct begin: looked at once, as each path leaves it as
    it was."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._picture: unjournaled.Picture | None = None
        self._met = 0

    def picture(self) -> unjournaled.Picture:
        """As it is where the next path begins."""
        externals = self._session.objects.externals
        if self._picture is None:
            self._picture = unjournaled.picture(self._session)
        else:
            met = [owner for owner, _ in itertools.islice(externals.values(), self._met, None)]
            self._picture = unjournaled.again(self._session, self._picture, met)
        self._met = len(externals)
        return self._picture


def trace_path(
    session: Session, kind: str, names: Names, run: Callable[[], Any], prepare: Callable[[Scope], None] | None = None,
    reachable_there: Reachable | None = None,
) -> Path:  # fmt: skip
    """Run ``run`` into a new Block; afterwards names, Python state and storages are as they were before.

    ``reachable_there``: of the construct, where it has several paths.
    """
    reachable = (reachable_there or Reachable(session)).picture()
    modes = torch_internals.ambient_modes()
    made, cached = len(session.objects.created), frozenset(session.objects.cached)
    memory, histories, variables = PathMemory(session), PathHistories(session), PathNames(session, names)
    places, used_up, leaves, copies = PathPlaces(session), PathUsedUp(session), PathLeaves(session), PathCopies(session)
    existence = PathExistence(session, kind in STRUCTURAL and STRUCTURAL[kind].flow.kind is Kind.BRANCH)
    states: tuple[PathState, ...] = (memory, histories, variables, places, used_up, leaves, copies, existence)
    for state in states:
        state.begin()
    session.constructs.pictures.append(reachable)
    ended = False
    result = None
    try:
        with noted(session, lambda: variables.before), session.open(kind) as scope:
            if prepare is not None:
                prepare(scope)
            try:
                result = run()
                tables.settle_objects(session)
                if session.exceptions.escape is not None:
                    raise catching.unsupported(session)
            except PathEnds:
                ended = True
            except (Dy2StaticError, Restart, RecursionError):
                raise
            except torch_internals.shape_errors() as error:
                raise session.undecidable() from error
            except BaseException as error:
                if not faults.comes_of_code(error):
                    raise
                faults.require_users(session, error)
                stage_raise(session, error)
                error.__traceback__ = None  # see _forget_frames
                ended = True
        waiting.end_path(session, zip(variables.before, names.get()))
        for state in states:
            state.note()
        if len(session.objects.cached) > len(cached):
            cached_results.end_path(session, cached, [*variables.at_end, result, *_stored(session)])
    finally:
        session.constructs.pictures.pop()
        unjournaled.note_stopped(session, reachable)
        for state in reversed(states):
            state.undo()
        _forget_frames(session, made)
    require_modes(session, modes, ended)
    unjournaled.require_unchanged(session, reachable, "on a path that only some inputs take")
    return Path(scope, ended, variables.at_end, result, states, places.at_end, memory.at_end, histories.at_end,
                used_up.at_end, leaves.at_end, copies.at_end, existence.at_end)  # fmt: skip


def _stored(session: Session) -> Iterator[Any]:
    """What the path that ends has stored: in attributes, variables and containers."""
    for place in session.journal.frames[-1]:
        if id(place.owner) not in session.objects.cached:
            yield place.owner if place.kind == "content" else place.get()


def is_alone(session: Session, position: int, names: Sequence[Any], paths: Sequence[Path] = ()) -> bool:
    """Whether a variable of a construct, ``names[position]``, is all that refers to its list or dict.

    Nobody can tell it from a new one then. This is an optimisation: it decides how much is recorded, never what it
    means. Where a debugger refers to it as well, or on a Python that counts otherwise, it becomes one of several
    (``pytest --held`` runs tests with the answer no).
    """
    value = names[position]
    is_outside = id(value) in session.objects.externals
    if type(value) not in (list, dict) or is_outside or id(value) in session.containers.hidden:
        return False
    mine = 1 + sum(one is value for one in names)
    mine += sum(one is value for path in paths for one in (*path.names, path.result))
    own = own_references(session, (id(value),), *(path.places for path in paths))[id(value)]
    return others(value) - own - mine <= 0


def _forget_frames(session: Session, made: int) -> None:
    """Exceptions raised and caught on a path: their frames would keep alive what the path, and we, had."""
    for error in itertools.islice(session.objects.created.values(), made, None):
        if is_a(error, BaseException):
            error.__traceback__ = None


def require_modes(session: Session, before: dict[str, Any], ended: bool) -> None:
    """Refuse a path that leaves torch in another mode than it found it in: the paths run one after the other.

    Raises:
        TraceError: The grad mode, autocast or another setting differs now.
    """
    changed = torch_internals.changed_modes(before)
    if changed:
        torch_internals.set_ambient_modes(before)
    if changed and not ended:
        raise session.error(
            f"{changed[0]} is changed on a path that only some inputs take, and stays so after it",
            hint="Use a with statement around what the setting is for.",
            code="D2S227",
        )


def include_new(entry: Snapshot, paths: Sequence[Path]) -> None:
    """Add to a snapshot the caller's memory that paths met first, with what it held at entry."""
    for path in paths:
        for storage in path.storages:
            if storage.origin is not None:
                entry.setdefault(storage, storage.origin)
