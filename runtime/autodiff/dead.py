"""What a derivative's halves do not need: values that nothing reads, and what loops carry for nobody."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runtime.ir import Block, Operand, Operator, Variable
from runtime.ir.operator import leaves
from runtime.ops.raising import does_more, has_effect

HasEffect = Callable[[Operator], bool]
"""Whether an Operator is to stay although nothing reads its results."""


def remove_dead(block: Block, results: Sequence[Operand], has_effect: HasEffect = has_effect) -> None:
    """Drop Operators without effect whose results nothing reads, and what loops carry for nobody.

    An Operator that may raise has an effect, where it is the user's: what a derivative's formulas compute for nobody
    (``has_effect=does_more``) eager does not compute.
    """
    live = set(leaves(list(results)))
    kept: list[Operator] = []
    for op in reversed(block.ops):
        if not any(out in live for out in op.outputs) and not has_effect(op):
            continue
        if op.name == "while_loop":
            _narrow_loop(op, live, has_effect)
        elif op.name in ("cond", "switch"):
            _narrow_branch(op, live)
        for inner in op.blocks:
            if op.name != "update":  # whose Operators are there for what they write
                remove_dead(inner, inner.yields, has_effect)
            live.update(inner.captures())
        live.update(op.inputs)
        kept.append(op)
    block.ops[:] = reversed(kept)


def _narrow_branch(op: Operator, live: set[Variable]) -> None:
    """Results of a branch that nothing reads."""
    keep = [position for position, out in enumerate(op.outputs) if out in live]
    op.outputs = tuple(op.outputs[position] for position in keep)
    for block in op.blocks:
        block.yields = [block.yields[position] for position in keep]


def _narrow_loop(op: Operator, live: set[Variable], has_effect: HasEffect) -> None:
    """Carried values that neither the test, nor another carried value, nor anything after the loop reads."""
    test, body = op.blocks
    makers = {out: one for one in body.ops for out in one.outputs}
    positions = {arg: position for position, arg in enumerate(body.args)}
    needed: set[int] = set()
    seen: set[Variable] = set()
    todo: list[Variable] = []

    def carry(position: int) -> None:
        if position not in needed:
            needed.add(position)
            todo.extend(leaves(body.yields[position]))

    tested = {arg: position for position, arg in enumerate(test.args)}
    for var in [*leaves(test.yields), *(v for one in test.ops for v in [*one.inputs, *_captured(one)])]:
        if var in tested:
            carry(tested[var])
    for one in body.ops:
        if has_effect(one):
            todo.extend([*one.inputs, *_captured(one)])
    for position, out in enumerate(op.outputs):
        if out in live:
            carry(position)
    while todo:
        var = todo.pop()
        if var in seen:
            continue
        seen.add(var)
        if var in positions:
            carry(positions[var])
        maker = makers.get(var)
        if maker is not None:
            todo.extend([*maker.inputs, *_captured(maker)])
    keep = sorted(needed)
    op.args = tuple(op.args[position] for position in keep)
    op.outputs = tuple(op.outputs[position] for position in keep)
    for block in op.blocks:
        block.args = [block.args[position] for position in keep]
    body.yields = [body.yields[position] for position in keep]


def _captured(op: Operator) -> list[Variable]:
    return [var for block in op.blocks for var in block.captures()]


__all__ = ["HasEffect", "does_more", "has_effect", "remove_dead"]
