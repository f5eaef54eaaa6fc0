"""What takes part in a branch or loop besides the values of variables: memory, what shares it, views.

Each is a *part*, and takes the same steps: what it carries through the construct is an operand of each path, and what
it knows of the tensors that leave paths becomes something it knows of those that stand for them afterwards. ``cond``
and ``while_loop`` go through their parts and know none by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from runtime.ir import Location, Operand, Operator, Type, Variable

if TYPE_CHECKING:
    from runtime.tracer.control.branches import Path
    from runtime.tracer.memory.storage_table import Storage
    from runtime.tracer.recording.session import Scope, Session

Number = tuple[int, int]
"""A tensor of a loop's state: its slot, and its position there."""
Pairs = Sequence[tuple[Number, torch.Tensor, torch.Tensor]]
"""Tensors that leave or enter, beside those that stand for them."""
Met = Sequence[tuple["Path", Sequence[tuple[torch.Tensor, torch.Tensor]]]]
"""By path, the tensors that it leaves, beside those that stand for them after the construct."""


@dataclass(frozen=True, eq=False)
class Branches:
    """A ``cond`` or ``switch`` whose paths are traced."""

    session: Session
    paths: Sequence[Path]
    entry: dict[Storage, Variable]
    """What memory held before it."""


class JoinPart:
    """A part of a ``cond`` or ``switch``; does nothing unless a method is overridden."""

    def __init__(self, branches: Branches) -> None:
        self.branches = branches

    def carried(self) -> list[tuple[Type, str]]:
        """Types and labels of what every path yields for it; called once, before the others."""
        return []

    def yields(self, path: Path) -> list[Operand]:
        """What a path yields, asked for where it ends."""
        return []

    def recorded(self, op: Operator, outputs: Iterator[Variable]) -> None:
        """The Operator is there; ``outputs``: what the paths yielded, to be taken in order."""

    def tensors(self, op: Operator, met: Met) -> None:
        """The values after the construct are there."""


@dataclass(frozen=True, eq=False)
class Body:
    """The body of a loop, about to be traced."""

    session: Session
    scope: Scope
    entry: dict[Storage, Variable]
    """What memory held before the loop."""
    touched: set[Storage]
    """Memory that the body wrote, or had to look at for a write; filled while it is traced."""
    location: Location | None
    older: Set[int]
    """The objects that no iteration made, by identity."""


class LoopPart:
    """A part of a ``while_loop``; does nothing unless a method is overridden.

    Each attempt to trace the body has parts of its own, made from those of the attempt before (``again``), so that it
    begins with what that one found.
    """

    def again(self) -> LoopPart:
        """The same part for the next attempt."""
        return self

    def arguments(self, body: Body) -> list[Variable]:
        """The Block's arguments for what it carries, which the body begins with."""
        return []

    def inits(self) -> list[Operand]:
        """What those are before the loop."""
        return []

    def enter(self, body: Body, pairs: Pairs, stand_ins: Pairs) -> None:
        """The body is about to run; ``pairs``: what the state was before the loop, beside what it is in the body.

        ``stand_ins``: all that the body has, twice; what stands for tensors that only iterations bring included.
        """

    def traced(self, body: Body, path: Path) -> None:
        """The body is traced; nothing was asked yet of what the iteration leaves."""

    def leave(self, body: Body, path: Path, pairs: Pairs) -> bool:
        """Note what an iteration leaves; whether the body was traced as if that had been known."""
        return True

    def left(self, path: Path) -> dict[Variable, Variable]:
        """What the next iteration has for what this one begins with, as far as gradients may go through it."""
        return {}

    def forget(self, slots: set[int]) -> None:
        """Slots whose structure changed are numbered anew."""

    def yields(self, path: Path) -> list[Operand]:
        """What the iteration yields, asked for where it ends."""
        return []

    def carried(self) -> list[tuple[Type, str]]:
        """Types and labels of the loop's outputs for it."""
        return []

    def recorded(self, outputs: Iterator[Variable]) -> None:
        """The loop is recorded; ``outputs``: what it gives, to be taken in order."""

    def finish(self, body: Body, op: Operator, path: Path, pairs: Pairs) -> None:
        """The values after the loop are there; ``pairs``: those, twice."""


__all__ = ["Body", "Branches", "JoinPart", "LoopPart", "Met", "Number", "Pairs"]
