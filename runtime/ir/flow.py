"""How the Blocks of an operator run, and how values go through it: what walks over Programs ask, in place of names.

    %y : f32[3] = cond(%flag) { yield %a } { yield %x }        a branch; its one port is {yields (0, 0), output 0}
    %n : int = while_loop(0) { ^(%i : int): ... } { ... }      a loop; its port is {arg 0, arguments (0, 0),
                                                               yields (-, 0), output 0}

A *port* is one value's way: from an argument of the Operator to arguments of its Blocks, from what Blocks yield to an
output. The idea is that of MLIR's RegionBranchOpInterface.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.ir.operator import Operator
from runtime.ir.variable import Operand


class Kind(enum.Enum):
    """How an operator's Blocks run."""

    PLAIN = "plain"
    """It has none."""
    BRANCH = "branch"
    """One of them runs, once."""
    LOOP = "loop"
    """They run in order, again and again, or not at all."""
    INLINE = "inline"
    """They run once, in order."""
    FUNCTION = "function"
    """Somebody else calls them, now or later, or one of them calls itself."""


@dataclass(frozen=True)
class Port:
    """One value's way through an Operator, as positions; None where it does not go through there.

    arg: among the Operator's arguments; inner: among each Block's arguments; yields: among each Block's yields;
    output: among the Operator's outputs. ``whole``: it stays the value that it is; else an item is taken of what comes
    in, or what comes out is put together from what is yielded.
    """

    arg: int | None = None
    inner: tuple[int | None, ...] = ()
    yields: tuple[int | None, ...] = ()
    output: int | None = None
    whole: bool = True

    @property
    def is_own(self) -> bool:
        """Whether the operator itself gives the value: a counter, which no one else can take out."""
        return self.arg is None and self.output is None


@dataclass(frozen=True)
class First:
    """What says before a loop begins whether it has an iteration: a flag (True: it surely has one), or with
    ``is_count`` how many it has."""

    value: Operand
    is_count: bool = False


def nothing_more(op: Operator, ports: Sequence[Port]) -> None:
    """What is to be done besides when ports are taken out of an Operator that does not count them."""


def no_ports(op: Operator) -> Sequence[Port]:
    """The ports of an operator without Blocks, and of one whose Blocks somebody else calls."""
    return ()


def no_decision(op: Operator) -> Sequence[Operand]:
    """The decision of an operator whose Blocks run in any case, or whose Blocks somebody else calls."""
    return ()


def run_tells(op: Operator) -> int | None:
    """The Block taken of an operator that is no branch, and of a branch on something that only running it tells."""
    return None


def not_told(op: Operator) -> First | None:
    """The first test of an operator that is no loop, and of a loop that only running it tells of."""
    return None


def no_name(op: Operator) -> str | None:
    """The name of an operator whose Blocks no Operator inside runs again."""
    return None


@dataclass(frozen=True)
class Flow:
    """What an operator's definition says of its Blocks: how they run, what each is called, the ports of an Operator.

    The last name is that of all further Blocks. ``dropping`` is called before ports are taken out of an Operator, for
    attributes that count them. ``decides`` gives the values that say which Block runs, or whether one runs again:
    a branch or loop must have it. ``taken`` gives for a branch the position of the Block that surely runs, and
    ``first`` for a loop what says whether it has an iteration; None where only running it tells, or where it has none.
    ``named``: what Operators inside call it that run its Block again (``OpDefinition.again``).
    """

    kind: Kind = Kind.PLAIN
    blocks: tuple[str, ...] = ()
    ports: Callable[[Operator], Sequence[Port]] = no_ports
    dropping: Callable[[Operator, Sequence[Port]], None] = nothing_more
    decides: Callable[[Operator], Sequence[Operand]] = no_decision
    first: Callable[[Operator], First | None] = not_told
    taken: Callable[[Operator], int | None] = run_tells
    named: Callable[[Operator], str | None] = no_name

    def __post_init__(self) -> None:
        if self.is_path and self.decides is no_decision:
            raise ValueError(f"a {self.kind.value} must say what decides")

    @property
    def is_path(self) -> bool:
        """Whether which Blocks run, or how often, is known at run time only."""
        return self.kind in (Kind.BRANCH, Kind.LOOP)

    def name(self, position: int) -> str:
        """What a Block is called."""
        if not self.blocks:
            return f"block {position}"
        return self.blocks[min(position, len(self.blocks) - 1)].format(position)


PLAIN = Flow()
"""Of an operator without Blocks."""

__all__ = ["PLAIN", "First", "Flow", "Kind", "Port", "no_name", "no_ports"]
