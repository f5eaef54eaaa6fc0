"""Memory that existed before a branch or loop and that its paths or iterations write."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from runtime.ir import Operand, Operator, Type, Variable
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Body, Branches, JoinPart, LoopPart, Pairs
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.recording import nonwritable_views
from runtime.tracer.recording.session import Session
from runtime.tracer.values import one_view


class JoinMemory(JoinPart):
    """What paths wrote is one more value that they yield; what a path gave up may not be read after it either."""

    def __init__(self, branches: Branches) -> None:
        super().__init__(branches)
        self._changed: list[Storage] = []
        self._shown: list[torch.Tensor] = []
        """Tensors of that memory that have to be one Variable each (see ``values.one_view``)."""

    def carried(self) -> list[tuple[Type, str]]:
        """The content of each storage that a path wrote."""
        alive = [path for path in self.branches.paths if not path.ended]
        for storage, before in self.branches.entry.items():
            values = [(path, path.storages.get(storage, before)) for path in alive]
            if storage.value is before and all(value is before for _, value in values):
                continue
            hidden = [value for path, value in values if not path.scope.sees(value)]
            if hidden:
                storage.value = hidden[0]
            elif any(value is not before for _, value in values):
                self._changed.append(storage)
        session = self.branches.session
        self._shown = list(one_view.older_than(session, self.branches.entry, self._changed))
        return [(storage.value.type, storage.label) for storage in self._changed] + [
            (session.type_of(session.fake(tensor)), "") for tensor in self._shown]

    def yields(self, path: Path) -> list[Operand]:
        """What a path leaves in them."""
        return [path.storages.get(storage, self.branches.entry[storage]) for storage in self._changed] + [
            self.branches.session.read(tensor) for tensor in self._shown]

    def recorded(self, op: Operator, outputs: Iterator[Variable]) -> None:
        """What they hold from now on."""
        branches = self.branches
        for storage in self._changed:
            storage.value = next(outputs)
            nonwritable_views.note_join(branches.session, storage, op, branches.entry[storage], branches.paths)
        for tensor in self._shown:
            info = branches.session.info(tensor)
            info.cached, info.cached_for = next(outputs), info.storage.value


class LoopMemory(LoopPart):
    """What iterations write is carried round."""

    def __init__(self, session: Session, written: list[Storage] | None = None) -> None:
        self._session = session
        self._written = list(written or ())
        self._carried = list(self._written)
        """What the body was traced with; an iteration may turn out to write more."""
        self._writes: list[nonwritable_views.LoopWrites] = []

    def again(self) -> LoopMemory:
        """With all that iterations turned out to write."""
        return LoopMemory(self._session, self._written)

    def arguments(self, body: Body) -> list[Variable]:
        """What each storage holds when an iteration begins."""
        found = []
        for storage in self._carried:
            var = body.session.new_variable(storage.value.type, storage.label)
            before, storage.value = storage.value, var
            body.scope.begins[var] = before
            self._writes.append(nonwritable_views.LoopWrites(storage, before, body.scope))
            found.append(var)
        self._entry, self._begun = body.entry, found
        return found

    def inits(self) -> list[Operand]:
        """What they held before the loop."""
        return [self._session.require_visible(self._entry[storage]) for storage in self._carried]

    def leave(self, body: Body, path: Path, pairs: Pairs) -> bool:
        """Whether nothing else was written."""
        new = [storage for storage, before in body.entry.items()
               if storage not in self._written and path.storages.get(storage, before) is not before]  # fmt: skip
        self._written += new
        return not new

    def left(self, path: Path) -> dict[Variable, Variable]:
        """What each holds when the next iteration begins."""
        return {var: path.storages.get(storage, self._entry[storage])
                for var, storage in zip(self._begun, self._carried)}  # fmt: skip

    def yields(self, path: Path) -> list[Operand]:
        """What the iteration leaves in them."""
        return [path.storages.get(storage, self._entry[storage]) for storage in self._carried]

    def carried(self) -> list[tuple[Type, str]]:
        """The content of each."""
        return [(storage.value.type, storage.label) for storage in self._carried]

    def recorded(self, outputs: Iterator[Variable]) -> None:
        """What they hold from now on."""
        for storage in self._carried:
            storage.value = next(outputs)

    def finish(self, body: Body, op: Operator, path: Path, pairs: Pairs) -> None:
        """Whether they were written is known."""
        for writes in self._writes:
            writes.finish(body.session, op, path)


__all__ = ["JoinMemory", "LoopMemory"]
