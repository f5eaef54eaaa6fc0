"""Blocks: straight-line sequences of Operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.ir.operator import Operator, leaves
from runtime.ir.variable import Operand, Variable


@dataclass(eq=False)
class Block:
    """A sequence of Operators with arguments and yields.

    An Operator may read the Block's ``args``, earlier outputs of the same Block, and anything visible where the
    Operator that holds the Block stands (lexical capture). ``yields`` are leaf operands: Variables, constants, UNDEF.
    """

    args: list[Variable] = field(default_factory=list)
    ops: list[Operator] = field(default_factory=list)
    yields: list[Operand] = field(default_factory=list)

    def walk(self) -> Iterator[Operator]:
        """Every Operator of the Block and of the Blocks inside it, in program order, outer before inner."""
        for op in self.ops:
            yield op
            for block in op.blocks:
                yield from block.walk()

    def captures(self) -> list[Variable]:
        """Variables of outer Blocks read inside (each once, in order of first use)."""
        return captures_within(self)[id(self)]


def captures_within(block: Block) -> dict[int, list[Variable]]:
    """By identity: what a Block and each Block inside it captures (``Block.captures``), found in one pass."""
    found: dict[int, list[Variable]] = {}
    _note_captures(block, found)
    return found


def _note_captures(block: Block, found: dict[int, list[Variable]]) -> list[Variable]:
    defined: set[Variable] = set(block.args)
    read: dict[Variable, None] = {}
    for op in block.ops:
        for var in op.inputs:
            if var not in defined:
                read[var] = None
        for inner in op.blocks:
            for var in _note_captures(inner, found):
                if var not in defined:
                    read[var] = None
        defined.update(op.outputs)
    for var in leaves(block.yields):
        if var not in defined:
            read[var] = None
    found[id(block)] = captured = list(read)
    return captured
