"""The constructs of the user's program that the trace is in, and what it keeps for when it leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.tracer.ambient.session_parts import DEEP, ITEMS, KEPT, VALUE, SessionPart, state

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import Storage
    from runtime.tracer.python_state.notes import Note
    from runtime.tracer.recording.attempt import Attempt


@dataclass(eq=False)
class Constructs(SessionPart):
    """Branches, loops, attempts and ``recompute()`` regions, innermost last."""

    touched: list[set[Storage]] = state(DEEP, list)
    """For each loop being traced: memory that its body wrote, or had to look at for a write."""
    pictures: list[Any] = state(ITEMS, list)
    """What was there when each of the paths began that the trace is on (see ``values/unjournaled``)."""
    notes: list[Note] = state(ITEMS, list)
    """What the tracer refers to for the constructs that the trace is in."""
    paths: int = state(VALUE, 1)
    """How many paths the operations on values that are one of several have, in each other."""
    checkpoints: int = state(VALUE, 0)
    """How many ``recompute()`` regions the trace is in."""
    regions: int = state(VALUE, 0)
    """How many such regions there were that are in no other; Operators have the number of theirs."""
    attempts: list[Attempt] = state(KEPT, list)  # the attempts themselves
    """What is being tried."""

    def enter_region(self) -> None:
        """A ``recompute()`` region begins."""
        self.regions += self.checkpoints == 0
        self.checkpoints += 1

    def leave_region(self) -> None:
        """It ends."""
        self.checkpoints -= 1


__all__ = ["Constructs"]
