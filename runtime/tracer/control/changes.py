"""What code changes of what is older than itself: Python state, and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runtime.ir import Block, Location, Operator, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.tracer.control.branches import Path, include_new
from runtime.tracer.control.merged import is_new
from runtime.tracer.control.older import Identities, older
from runtime.tracer.control.slots import held, same_items
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.python_state.held import RowField
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.session import Session
from runtime.tracer.values import structure


class Older:
    """What there is before a path is traced: make one, trace it, then ask what it changed."""

    def __init__(self, session: Session, functions: Iterable[Callable[..., Any]], values: Iterable[Any] = ()) -> None:
        """``functions``, ``values``: where the path's code comes from, beside what the trace knows anyway."""
        self.session = session
        self.storages = session.storages.snapshot()
        """What memory holds."""
        self.objects = Identities(session.objects.created)
        """Identities of all but containers."""
        stored = [value for frame in session.journal.frames for place in frame for value in (place.owner, place.get())]
        # what modules hold that the trace made is among them
        self.containers = older(session, functions, [*values, *stored], self.objects)
        """Identities of containers."""

    def has(self, value: Any) -> bool:
        """Whether an object was found when it was made."""
        return id(value) in self.objects or id(value) in self.containers

    def is_new(self, place: Place) -> bool:
        """Whether the path made what a place belongs to."""
        return is_new(self.session, place, self.containers, self.objects)

    def places(self, path: Path) -> Iterator[Place]:
        """The places that the path leaves changed."""
        for place, value in path.places.items():
            if type(value) is RowField or not (self.is_new(place) or self._is_unchanged(path, place, value)):
                yield place

    def _is_unchanged(self, path: Path, place: Place, value: Any) -> bool:
        now = held(place)
        if place.kind == "content":
            with path.inside(self.session):
                value = held(place)
            return same_items(value, now)
        return structure.same_known(value, now)

    def written(self, path: Path) -> Iterator[tuple[Storage, Variable]]:
        """The memory that the path leaves changed, with what is in it then."""
        include_new(self.storages, [path])
        for storage, before in self.storages.items():
            value = path.storages.get(storage, before)
            if value is not before:
                yield storage, value


def written_at(block: Block, value: Variable) -> Location | None:
    """Where the Operator stands that gave a value, or what it was made of in a branch or loop."""
    ops: list[Operator] = [op for op in block.walk() if value in op.outputs]
    inside = [one for op in ops for inner in op.blocks for one in inner.walk() if flow_of(one).kind is Kind.INLINE]
    return (inside or ops)[-1].location if ops else None


__all__ = ["Older", "written_at"]
