"""What belongs to the path that the trace is on: begun where a path begins, put back where it ends.

Every kind takes the same steps: ``begin``; ``note``, where the path came to its end; ``undo``, in any case; and
``again``, for what is recorded at the path's end later. What it was there is ``at_end``, of which a join or loop makes
what is so after it (``parts``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from runtime.ir import Location, Variable
from runtime.tracer.memory.conditions import PathCondition
from runtime.tracer.memory.graph import UsedUp
from runtime.tracer.memory.storage_table import Snapshot, TensorInfo
from runtime.tracer.python_state.journal import Frame, Place
from runtime.tracer.recording import leaf_changes
from runtime.tracer.recording.leaf_changes import LeafChange

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class Names(Protocol):
    """The local variables a construct may change."""

    names: tuple[str, ...]

    def get(self) -> tuple[Any, ...]:
        """Their values now."""

    def set(self, values: tuple[Any, ...]) -> None:
        """Assign them."""

    def holds(self, place: Place) -> bool:
        """Whether the place is one of them, as the functions see it that share it."""


class PathState:
    """One kind; does nothing unless a method is overridden."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def begin(self) -> None:
        """A path begins."""

    def note(self) -> None:
        """It came to its end, by a ``raise`` at the latest."""

    def undo(self) -> None:
        """It is over, if only because the trace failed; what it was before is kept no longer."""

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """As it was at the path's end."""
        yield


class PathMemory(PathState):
    """What memory holds."""

    at_end: Snapshot
    """Values of every storage alive then."""

    def begin(self) -> None:
        """Remember what it holds."""
        self._before = self.session.storages.snapshot()
        self.at_end = Snapshot()

    def note(self) -> None:
        """Remember it for the end."""
        self.at_end = self.session.storages.snapshot()

    def undo(self) -> None:
        """As before the path."""
        self.session.storages.restore(self._before)
        self._before = Snapshot()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """As at the path's end."""
        before = self.session.storages.snapshot()
        self.session.storages.restore(self.at_end)
        try:
            yield
        finally:
            self.session.storages.restore(before)


class PathHistories(PathState):
    """When views that are older have no history (``Graph.bare``)."""

    at_end: dict[TensorInfo, PathCondition]
    """Of those that were there before the path."""

    def begin(self) -> None:
        """Remember them."""
        self._before = dict(self.session.graph.bare)
        self.at_end = {}

    def note(self) -> None:
        """Remember those for the end."""
        bare = self.session.graph.bare
        self.at_end = {info: bare[info] for info in self._before}

    def undo(self) -> None:
        """As before the path."""
        self.session.graph.bare.update(self._before)
        self._before = {}

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """As at the path's end."""
        before = dict(self.session.graph.bare)
        self.session.graph.bare.update(self.at_end)
        try:
            yield
        finally:
            self.session.graph.bare.update(before)


class PathNames(PathState):
    """The local variables of the construct."""

    at_end: tuple[Any, ...] = ()

    def __init__(self, session: Session, names: Names) -> None:
        super().__init__(session)
        self._names = names

    def begin(self) -> None:
        """Remember their values."""
        self.before = self._names.get()

    def note(self) -> None:
        """Remember those of the end."""
        self.at_end = self._names.get()

    def undo(self) -> None:
        """Assign what they were."""
        self._names.set(self.before)
        self.before = ()


class PathPlaces(PathState):
    """Attributes, items, variables of others: what the journal knows."""

    at_end: Frame
    """What each place holds that the path stored to."""

    def begin(self) -> None:
        """A frame of the journal."""
        self.session.journal.open()
        self.at_end = Frame()

    def undo(self) -> None:
        """Put back what each held."""
        self.at_end = self.session.journal.close()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """As at the path's end."""
        before = Frame.of_now(self.at_end)
        for place, value in self.at_end.items():
            place.put_back(value)
        self.at_end.put_orders()
        try:
            yield
        finally:
            for place, value in reversed(before.items()):
                place.put_back(value)
            before.put_orders()


class PathUsedUp(PathState):
    """Gradients that did not retain the graph (``Graph.used_up``)."""

    at_end: tuple[UsedUp, ...] = ()

    def begin(self) -> None:
        """Remember the earlier ones."""
        self._before = self.session.graph.used_up

    def note(self) -> None:
        """And those of the path."""
        self.at_end = self.session.graph.used_up

    def undo(self) -> None:
        """The earlier ones only."""
        self.session.graph.used_up = self._before


class PathLeaves(PathState):
    """Tensors older than the path whose ``requires_grad`` it set (``leaf_changes``)."""

    at_end: Sequence[LeafChange] = ()

    def begin(self) -> None:
        """None, and what is here now is older than the path."""
        graph = self.session.graph
        self._before, self._start = graph.leaf_changes, graph.path_start
        graph.leaf_changes, graph.path_start = {}, self.session.origins.number()

    def undo(self) -> None:
        """Each stands again for what it stood for before."""
        graph = self.session.graph
        self.at_end = list(graph.leaf_changes.values())
        leaf_changes.undo(self.session, self.at_end)
        graph.leaf_changes, graph.path_start = self._before, self._start


class PathCopies(PathState):
    """Containers of which lists that grow hold copies (``shared_items``)."""

    at_end: dict[int, Location | None]

    def begin(self) -> None:
        """Those that are held already."""
        containers = self.session.containers
        self._before, containers.held_in_lists = containers.held_in_lists, dict(containers.held_in_lists)
        self.at_end = {}

    def undo(self) -> None:
        """Those only."""
        self.at_end = self.session.containers.held_in_lists
        self.session.containers.held_in_lists = self._before


class PathExistence(PathState):
    """What is known of the runs in which containers exist (``existence``). Where a path may be taken several times,
    nothing is: what is so in one iteration need not be in the next."""

    at_end: dict[int, tuple[tuple[Any], Mapping[Variable, frozenset[int]]]]

    def __init__(self, session: Session, once: bool) -> None:
        super().__init__(session)
        self._once = once

    def begin(self) -> None:
        """What was known before."""
        containers = self.session.containers
        self._before, containers.existing = containers.existing, dict(containers.existing) if self._once else {}
        self.at_end = {}

    def undo(self) -> None:
        """That only."""
        containers = self.session.containers
        self.at_end, containers.existing = containers.existing, self._before


__all__ = [
    "Names", "PathCopies", "PathExistence", "PathHistories", "PathLeaves", "PathMemory", "PathNames", "PathPlaces",
    "PathState", "PathUsedUp",
]  # fmt: skip
