"""Which Blocks of a Program have run, and how often."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.ir import Block, Location, Program
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of


@dataclass(frozen=True)
class BlockRuns:
    """One Block: what it is (``cond true branch``), where it stands in the user's source, and how often it ran."""

    what: str
    location: Location | None
    runs: int

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        return f"{self.runs:>8}  {where}{self.what}"


@dataclass(frozen=True)
class Coverage:
    """The runs of every Block, in program order; printing it gives a line for each."""

    blocks: tuple[BlockRuns, ...]

    @property
    def missed(self) -> tuple[BlockRuns, ...]:
        """The Blocks that never ran."""
        return tuple(block for block in self.blocks if not block.runs)

    def __str__(self) -> str:
        ran = len(self.blocks) - len(self.missed)
        return "\n".join([f"{ran} of {len(self.blocks)} blocks ran", *map(str, self.blocks)])


def numbered(program: Program) -> list[tuple[Block, str, Location | None]]:
    """Every Block whose running is a question (those of ``update`` run with their Operator), with its name."""
    found: list[tuple[Block, str, Location | None]] = [(program.block, f"program {program.name}", None)]
    for op in program.block.walk():
        flow = flow_of(op)
        if flow.kind is not Kind.INLINE:
            found += [(block, f"{op.name} {flow.name(at)}", op.location) for at, block in enumerate(op.blocks)]
    return found
