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
        defined: set[int] = set()
        found: dict[int, Variable] = {}

        def visit(block: Block) -> None:
            defined.update(id(arg) for arg in block.args)
            for op in block.ops:
                for var in op.inputs:
                    if id(var) not in defined:
                        found.setdefault(id(var), var)
                for inner in op.blocks:
                    visit(inner)
                defined.update(id(out) for out in op.outputs)
            for var in leaves(block.yields):
                if id(var) not in defined:
                    found.setdefault(id(var), var)

        visit(self)
        return list(found.values())
