"""Lists, dicts and records of which lists that grow hold copies since a path or an iteration (``shared_items``).

    while i < n:
        xs.append(row)       from here on, in the next iteration and after the loop, ``row`` may not be changed
"""

from __future__ import annotations

from runtime.ir import Variable
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Body, Branches, JoinPart, LoopPart, Pairs
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.recording.session import Session


def keep(session: Session, path: Path) -> None:
    """What is held at the end of a path that is traced is held from here on."""
    session.containers.held_in_lists.update(path.held_in_lists)


class JoinCopies(JoinPart):
    """Those of the paths of a ``cond`` or ``switch``."""

    def __init__(self, branches: Branches) -> None:
        """They are held whichever path was taken."""
        super().__init__(branches)
        for path in branches.paths:
            keep(branches.session, path)


class LoopCopies(LoopPart):
    """Those of the iterations of a ``while_loop``."""

    def __init__(self) -> None:
        self._before: set[int] = set()
        """What was held when the body began."""
        self._no_item: list[Storage] = []
        """The memory from before that was in no list that grows then."""

    def arguments(self, body: Body) -> list[Variable]:
        """None."""
        self._before = set(body.session.containers.held_in_lists)
        self._no_item = [storage for storage in body.entry if not storage.alias_sets]
        return []

    def traced(self, body: Body, path: Path) -> None:
        """They are held in the next iteration, and after the loop."""
        keep(body.session, path)

    def leave(self, body: Body, path: Path, pairs: Pairs) -> bool:
        """Whether nothing that is older than the iteration is held, or in such a list, since then."""
        new = body.session.containers.held_in_lists.keys() - self._before
        return body.older.isdisjoint(new) and not any(storage.alias_sets for storage in self._no_item)


__all__ = ["JoinCopies", "LoopCopies", "keep"]
