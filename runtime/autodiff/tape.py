"""The tape: what the forward half of a Block leaves for its backward half, in program order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Location, Operator, Variable
from runtime.tracer.memory.conditions import PathCondition
from runtime.tracer.recording.session import Scope

if TYPE_CHECKING:
    from runtime.autodiff.kept import Keeping
    from runtime.autodiff.versions import SavedValue, Watch

Activity = PathCondition | Variable
"""When a value depends on something that needs a gradient; for a list, a Variable that holds one flag for each item."""


class Entry:
    """What the forward half of an Operator, or of a straight-line run, leaves; each rule has its own kind."""


@dataclass(eq=False)
class Segment(Entry):
    """A straight-line run, replayed under torch's autograd.

    ``leaves`` are the values it reads that need a gradient, ``results`` what it computed that does; keyed by the
    Variables of the Program that is differentiated.
    """

    leaves: dict[Variable, torch.Tensor] = field(default_factory=dict)
    results: dict[Variable, torch.Tensor] = field(default_factory=dict)
    location: Location | None = None
    nodes: set[Any] = field(default_factory=set)
    """The nodes of autograd's graph that are known so far, and below what they keep."""
    saved: list[SavedValue] = field(default_factory=list)
    overwriting: dict[Any, Keeping] = field(default_factory=dict)
    """Nodes whose own Operator overwrote what they keep, as far as they show it, and when eager keeps it."""


@dataclass(eq=False)
class BranchEntry(Entry):
    """A ``cond`` or ``switch``: its Operator in the forward Program, and each path's scope and tape."""

    op: Operator
    recorded: Operator
    scope: Scope
    paths: list[tuple[Scope, Tape]]


@dataclass(eq=False)
class LoopEntry(Entry):
    """A ``while_loop``: ``active`` are the positions of carried values that need a gradient."""

    op: Operator
    recorded: Operator
    scope: Scope
    body_scope: Scope
    tape: Tape
    active: list[int]
    count: Variable
    carried: list[Any]
    """The stand-ins of the carried values inside the body."""
    later: dict[Variable, tuple[Variable | None, Variable]]
    """Flags that only backward can tell, "a later iteration did it": a number as it was after the iteration at hand
    (None: how many iterations there were by then) is less than another, that of the whole loop."""
    again: dict[Variable, tuple[Watch, Watch]]
    """Others, "what an iteration leaves is written later": as the next iteration has it, and as it is after the loop.
    """


@dataclass(eq=False)
class CustomEntry(Entry):
    """A ``custom_grad``: the values of its residuals."""

    op: Operator
    residuals: list[Any]
    results: list[Any]
    watches: dict[int, Watch]
    """Of the residuals that are tensors, by position: what was written since forward."""
    in_main: bool
    """Whether it stands in the Program's own Block."""


@dataclass(eq=False)
class ArrayEntry(Entry):
    """A list operator, with what its gradient needs to know: lengths, sizes and indices as they were."""

    op: Operator
    facts: list[Any]


@dataclass(eq=False)
class Tape:
    """Entries of one Block, in program order."""

    entries: list[Entry] = field(default_factory=list)
    cuts: list[tuple[int, int]] = field(default_factory=list)
    """Where stages after the first begin: position among the entries, position among the Block's Operators."""

    def stages(self) -> list[Tape]:
        """The entries of each stage."""
        bounds = [0, *(entry for entry, _ in self.cuts), len(self.entries)]
        return [Tape(self.entries[start:end]) for start, end in zip(bounds, bounds[1:])]


@dataclass(eq=False)
class Grad:
    """A gradient in the backward Program. ``maybe``: it can be None at run time, where eager would have none."""

    tensor: torch.Tensor
    maybe: bool = False


@dataclass(eq=False)
class ListGrad:
    """The gradient of a list: a list of gradients or None, as long as the list; or None altogether."""

    var: Variable


Grads = dict[Variable, Any]
"""Gradients (``Grad`` or ``ListGrad``) by the Variable of the Program that is differentiated."""
