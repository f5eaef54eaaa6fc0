"""Constant folding: numbers that are known before the Program runs, and branches whose flag is.

    %n : int = scalar.add(2, 3)                        ->   5 in place of %n
    cond(True) { %y = relu(%x); yield %y } { ... }     ->   the Operators of the Block that runs
"""

from __future__ import annotations

from typing import Any

from runtime.ir import UNDEF, Block, Operand, Operator, Program, Variable
from runtime.ir.definition import About, definition_of
from runtime.ir.operator import leaves
from runtime.ir.walk import replace_in
from runtime.passes.manager import Pass

_FOLDED = frozenset({
    "add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "pos", "abs", "and_", "or_", "xor", "lt", "le", "gt",
    "ge", "eq", "ne", "not_", "bool", "float", "min", "max", "is_none", "select",
})  # fmt: skip
"""What is computed beforehand: nothing whose result can be much larger than its operands."""

_LARGEST = 1 << 64


def fold(program: Program) -> int:
    """Compute what is constant; how many Operators that were."""
    return _block(program.block, {})


def _block(block: Block, known: dict[Variable, Operand]) -> int:
    changes = 0
    ops: list[Operator] = []
    for op in block.ops:
        replace_in(op, known)
        taken = _taken(op)
        for inner in op.blocks if taken is None else [taken]:
            changes += _block(inner, known)
        if taken is not None:
            ops += taken.ops
            known.update(zip(op.outputs, taken.yields))
            changes += 1
            continue
        if _is_constant(op):
            try:
                value = definition_of(op.name).evaluate(*op.args)  # type: ignore[misc]
            except Exception:  # the run raises it
                value = None
            if _is_plain(value):
                known[op.outputs[0]] = value
                changes += 1
                continue
        ops.append(op)
    block.ops[:] = ops
    block.yields = [known.get(value, value) if isinstance(value, Variable) else value for value in block.yields]
    return changes


def _taken(op: Operator) -> Block | None:
    """The Block of a branch that surely runs."""
    position = definition_of(op.name).flow.taken(op)
    if position is None:
        return None
    block = op.blocks[position]
    return None if any(value is None or value is UNDEF for value in block.yields) else block


def _is_constant(op: Operator) -> bool:
    folded = definition_of(op.name).about is About.NUMBERS and op.name.partition(".")[2] in _FOLDED
    constant = folded and not any(True for _ in leaves(op.args)) and not op.kwargs
    return constant and all(map(_is_plain, op.args))


def _is_plain(value: Any) -> bool:
    return type(value) in (bool, float) or (type(value) is int and abs(value) < _LARGEST)


PASS = Pass("constants", "numbers that are known, and branches whose flag is", fold)

__all__ = ["PASS", "fold"]
