"""Which Blocks of a Program have run, and how often."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.ir import Block, Location, Operator, Program

_NAMES = {
    "cond": ("true branch", "false branch"),
    "while_loop": ("test", "body"),
    "custom_grad": ("forward", "backward"),
    "update": ("writes",),
}


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
        if op.name != "update":
            found += [(block, _name(op, index), op.location) for index, block in enumerate(op.blocks)]
    return found


def _name(op: Operator, index: int) -> str:
    names = _NAMES.get(op.name, ())
    return f"{op.name} {names[index] if index < len(names) else f'block {index}'}"
