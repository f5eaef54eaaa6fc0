"""Dead code: values that nothing reads, and what loops carry for nobody.

    %a = aten.add(%x, 1); yield %x     ->     yield %x
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from runtime.ir import Block, Operand, Operator, Program, Variable
from runtime.ir.block import captures_within
from runtime.ir.flow import Kind, Port
from runtime.ir.operator import leaves
from runtime.ir.ports import drop_ports, flow_of
from runtime.ops.raising import does_more, has_effect
from runtime.passes.manager import Pass

HasEffect = Callable[[Operator], bool]
"""Whether an Operator is to stay although nothing reads its results."""
Captures = Mapping[int, list[Variable]]
"""By identity of a Block: what it captures before anything is removed from it."""


def remove_dead(
    block: Block, results: Sequence[Operand], has_effect: HasEffect = has_effect, narrow: bool = True
) -> None:
    """Drop Operators without effect whose results nothing reads, and what loops carry for nobody.

    An Operator that may raise has an effect, where it is the user's: what a derivative's formulas compute for nobody
    (``has_effect=does_more``) eager does not compute. ``narrow``: whether what branches and loops give, and loops
    carry, for nobody is left out.
    """
    _remove(block, results, has_effect, narrow, captures_within(block))


def _remove(
    block: Block, results: Sequence[Operand], has_effect: HasEffect, narrow: bool, captures: Captures
) -> set[Variable]:
    """What the Block, with what is left of it, reads, its own Variables among it."""
    live = set(leaves(list(results)))
    kept: list[Operator] = []
    for op in reversed(block.ops):
        if not any(out in live for out in op.outputs) and not has_effect(op):
            continue
        flow = flow_of(op)
        if flow.is_path and narrow:
            _narrow(op, flow.ports(op), live, has_effect, captures)
        for inner in op.blocks:
            if flow.kind is Kind.INLINE:  # whose Operators are there for what they write
                live.update(captures[id(inner)])
            else:
                live |= _remove(inner, inner.yields, has_effect, narrow, captures)
        live.update(op.inputs)
        kept.append(op)
    block.ops[:] = reversed(kept)
    return live


def _narrow(
    op: Operator, ports: Sequence[Port], live: set[Variable], has_effect: HasEffect, captures: Captures
) -> None:
    """Take out the ports that nothing reads: not what comes after, no Block, and no other value that is carried."""
    makers = {out: one for block in op.blocks for one in block.ops for out in one.outputs}
    inner = {block.args[place]: port for port in ports for block, place in zip(op.blocks, port.inner)
             if place is not None}  # fmt: skip
    needed: set[Port] = set()
    seen: set[Variable] = set()
    todo: list[Variable] = []

    def need(port: Port) -> None:
        if port not in needed:
            needed.add(port)
            for block, place in zip(op.blocks, port.yields):
                todo.extend(leaves(block.yields[place]) if place is not None else ())

    for index, block in enumerate(op.blocks):
        flowing = {port.yields[index] for port in ports}
        todo += [var for place, value in enumerate(block.yields) if place not in flowing for var in leaves(value)]
        for one in block.ops:
            if has_effect(one):
                todo += [*one.inputs, *_captured(one, captures)]
    for port in ports:
        if port.output is not None and op.outputs[port.output] in live:
            need(port)
    while todo:
        var = todo.pop()
        if var in seen:
            continue
        seen.add(var)
        if var in inner:
            need(inner[var])
        if var in makers:
            todo += [*makers[var].inputs, *_captured(makers[var], captures)]
    drop_ports(op, [port for port in ports if port not in needed and not port.is_own])


def _captured(op: Operator, captures: Captures) -> list[Variable]:
    return [var for block in op.blocks for var in captures[id(block)]]


def remove(program: Program) -> int:
    """Drop what nothing reads; how many Operators, results and carried values that were."""
    before = _size(program.block)
    writes = any(flow_of(op).kind is Kind.INLINE for op in program.block.walk())
    remove_dead(program.block, program.block.yields, _matters, narrow=not writes)
    return before - _size(program.block)


def _matters(op: Operator) -> bool:
    """Whether an Operator is to stay: a write, too, which backward may hear of though no result does. (So does it of
    what branches and loops give of written memory: they keep all of it where anything is written.)"""
    inside = (op, *(inner for block in op.blocks for inner in block.walk()))
    return any(flow_of(one).kind is Kind.INLINE for one in inside) or has_effect(op)


def _size(block: Block) -> int:
    return sum(1 + len(op.outputs) for op in block.walk())


PASS = Pass("dead_code", "what nothing reads", remove)

__all__ = ["PASS", "HasEffect", "does_more", "has_effect", "remove", "remove_dead"]
