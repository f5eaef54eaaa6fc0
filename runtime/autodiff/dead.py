"""What a derivative's halves do not need: values that nothing reads, and what loops carry for nobody."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir import Block, Operand, Operator, Variable
from runtime.ir.operator import leaves
from runtime.ops.registry import definition
from runtime.ops.update import may_overlap

_EFFECTS = ("assert", "print", "raise", "py_func")


def remove_dead(block: Block, results: Sequence[Operand]) -> None:
    """Drop Operators without effect whose results nothing reads, and what loops carry for nobody."""
    live = set(leaves(list(results)))
    kept: list[Operator] = []
    for op in reversed(block.ops):
        if not _has_effect(op) and not any(out in live for out in op.outputs):
            continue
        if op.name == "while_loop":
            _narrow_loop(op, live)
        elif op.name in ("cond", "switch"):
            _narrow_branch(op, live)
        for inner in op.blocks:
            if op.name != "update":  # whose Operators are there for what they write
                remove_dead(inner, inner.yields)
            live.update(inner.captures())
        live.update(op.inputs)
        kept.append(op)
    block.ops[:] = reversed(kept)


def _has_effect(op: Operator) -> bool:
    ops = [op, *(inner for block in op.blocks for inner in block.walk())]
    return any(
        one.name in _EFFECTS or definition(one.name).effect or definition(one.name).random or may_overlap(one)
        for one in ops
    )


def _narrow_branch(op: Operator, live: set[Variable]) -> None:
    """Results of a branch that nothing reads."""
    keep = [position for position, out in enumerate(op.outputs) if out in live]
    op.outputs = tuple(op.outputs[position] for position in keep)
    for block in op.blocks:
        block.yields = [block.yields[position] for position in keep]


def _narrow_loop(op: Operator, live: set[Variable]) -> None:
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
        if _has_effect(one):
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
