"""Common subexpressions: a number that was computed already is not computed again.

    %a : int = scalar.add(%n, 1); %b : int = scalar.add(%n, 1)      ->      %a in place of %b

Only numbers and texts: two tensors that are equal are still two, which somebody may write, compare by identity, or ask
for their gradients, and the gradient of one tensor used twice is rounded differently from that of two.
"""

from __future__ import annotations

from typing import Any

from runtime.ir import Block, Operand, Operator, Program, ScalarType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.walk import replace_in, substitute
from runtime.passes.manager import Pass


def share(program: Program) -> int:
    """Read the first of several equal numbers; how many Operators are left out."""
    return _block(program.block, {}, {})


def _block(block: Block, known: dict[Variable, Operand], seen: dict[Any, Operator]) -> int:
    changes = 0
    seen = dict(seen)  # what a Block computes, only it and its own Blocks have
    kept: list[Operator] = []
    for op in block.ops:
        replace_in(op, known)
        key = _key(op)
        first = None if key is None else seen.setdefault(key, op)
        if first is not None and first is not op:
            known.update(zip(op.outputs, first.outputs))
            changes += 1
            continue
        for inner in op.blocks:
            if flow_of(op).kind is Kind.INLINE:  # where memory is written, the same question has other answers
                substitute(inner, known)
            else:
                changes += _block(inner, known, seen)
        kept.append(op)
    block.ops[:] = kept
    block.yields = [known.get(value, value) if isinstance(value, Variable) else value for value in block.yields]
    return changes


def _key(op: Operator) -> Any:
    """What makes two Operators equal; None for one that has to run."""
    if op.blocks or not op.outputs or not all(isinstance(out.type, ScalarType) for out in op.outputs):
        return None
    definition = definition_of(op.name)
    if not definition.neutral or definition.effect or definition.random or definition.evaluate is None:
        return None
    parts = [_part(value) for value in (*op.args, *(item for pair in sorted(op.kwargs.items()) for item in pair))]
    attrs = [_part(value) for pair in sorted(op.attrs.items()) for value in pair]
    return None if None in parts or None in attrs else (op.name, tuple(parts), tuple(attrs))


def _part(value: Operand) -> Any:
    """An operand as part of a key: a Variable is itself, of constants those that surely are the same."""
    if isinstance(value, Variable):
        return ("variable", id(value))
    if value is None or type(value) in (bool, int, str):
        return (type(value).__name__, value)
    return (type(value).__name__, value.hex()) if type(value) is float else None


PASS = Pass("common_subexpressions", "numbers that were computed already", share)

__all__ = ["PASS", "share"]
