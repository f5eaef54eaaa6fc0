"""Which values may not exist where they are read: on some paths a Block yields UNDEF for them.

    %given : int, %y : f32[3] = cond(%c) { yield 0, undef } { yield 1, %x }
    %ok : bool = scalar.ne(%given, 0)
    assert(%ok)                        reads of %y stand after it, as they have no value to read before

The Operator that reads such a value relies on what was asked before it, which none of its arguments says.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.ir.block import Block
from runtime.ir.definition import definition_of
from runtime.ir.operator import Operator
from runtime.ir.ports import flow_of
from runtime.ir.variable import UNDEF, Operand, Variable


def may_be_undefined(block: Block) -> set[Variable]:
    """Variables of a Block, and of the Blocks inside, that have no value on some path.

    What an Operator computes of such a value exists: it would have failed. What Blocks hand on does not.
    """
    found: set[Variable] = set()
    ways = [way for op in block.walk() for way in _ways(op)]
    size = -1
    while size < len(found):
        size = len(found)
        found.update(given for value, given in ways if value is UNDEF or value in found)
    return found


def _ways(op: Operator) -> Iterator[tuple[Operand, Variable]]:
    """What becomes what, as it is, where an Operator with Blocks runs: (value, the Variable that gets it)."""
    for values, given in _gates(op):
        for value in values:
            if isinstance(value, Variable) or value is UNDEF:
                yield from ((value, var) for var in given)


def _gates(op: Operator) -> Iterator[tuple[list[Operand], list[Variable]]]:
    """Values with the Variables that may get one of them."""
    flow = flow_of(op)
    ports = flow.ports(op)
    for port in ports:
        inner = [block.args[place] for block, place in zip(op.blocks, port.inner) if place is not None]
        outer = [] if port.output is None else [op.outputs[port.output]]
        yielded = [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]
        yield [*yielded, *([] if port.arg is None else [op.args[port.arg]])], [*inner, *outer]
    name = flow.named(op)
    calls = [] if name is None else [one for one in op.blocks[0].walk() if definition_of(one.name).again(one) == name]
    if name is not None:
        yield from (([one.args[place] for one in (op, *calls)], [arg]) for place, arg in enumerate(op.blocks[0].args))
    ported = {port.output for port in ports}
    for place in range(len(op.outputs)):
        yielded = [block.yields[place] for block in op.blocks if len(block.yields) > place]
        if place not in ported and yielded:
            yield yielded, [one.outputs[place] for one in (op, *calls)]


__all__ = ["may_be_undefined"]
