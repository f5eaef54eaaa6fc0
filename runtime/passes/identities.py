"""Identities: Operators that give one of their operands.

    %m : int = scalar.mul(%n, 1)                  ->   %n
    %b : bool = scalar.not_(%a), %a = not_(%c)    ->   %c, a bool
    %b : bool = scalar.and_(%a, True)             ->   %a
    %y = cond(%flag) { yield %x } { yield %x }    ->   %x

Only of numbers: a tensor times one is another tensor, with a node of its own in autograd's graph.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.ir import Block, Operand, Operator, Program, ScalarType, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.walk import replace_in
from runtime.passes.manager import Pass

Makers = dict[Variable, Operator]


def simplify(program: Program) -> int:
    """Read operands in place of what surely is one of them; how many values that were."""
    return _block(program.block, {}, {})


def _block(block: Block, known: dict[Variable, Operand], makers: Makers) -> int:
    changes = 0
    for op in block.ops:
        replace_in(op, known)
        for inner in op.blocks:
            changes += _block(inner, known, makers)
        makers.update(dict.fromkeys(op.outputs, op))
        for out, value in _found(op, makers):
            known[out] = value
            changes += 1
    block.yields = [known.get(value, value) if isinstance(value, Variable) else value for value in block.yields]
    return changes


def _found(op: Operator, makers: Makers) -> list[tuple[Variable, Operand]]:
    if op.blocks:
        return _passed_on(op) if flow_of(op).kind is Kind.BRANCH else []
    rule = _RULES.get(op.name)
    value = None if rule is None else rule(op, makers)
    return [] if value is None or _kind(value) != _kind(op.outputs[0]) else [(op.outputs[0], value)]


def _passed_on(op: Operator) -> list[tuple[Variable, Operand]]:
    """What all paths of a branch give as it is, from before it."""
    found: list[tuple[Variable, Operand]] = []
    for port in flow_of(op).ports(op):
        if port.output is None:
            continue
        values = [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]
        first, out = values[0], op.outputs[port.output]
        own = {var for block in op.blocks for inner in block.ops for var in inner.outputs}
        same = all(value is first for value in values)
        if same and isinstance(first, Variable) and first.type == out.type and first not in own:
            found.append((out, first))
    return found


def _kind(value: Operand) -> str:
    if isinstance(value, Variable):
        return value.type.kind if isinstance(value.type, ScalarType) else ""
    return type(value).__name__


def _neutral(number: int, *, right_only: bool = False) -> Callable[[Operator, Makers], Operand]:
    """The operand beside a neutral int, where both are ints: a float may change (``-0.0 + 0``)."""

    def rule(op: Operator, makers: Makers) -> Operand:
        a, b = op.args
        if type(b) is int and b == number and _kind(a) == "int":
            return a
        return b if not right_only and type(a) is int and a == number and _kind(b) == "int" else None

    return rule


def _itself(op: Operator, makers: Makers) -> Operand:
    return op.args[0] if len(op.args) == 1 else None


def _not_not(op: Operator, makers: Makers) -> Operand:
    inner = makers.get(op.args[0]) if isinstance(op.args[0], Variable) else None
    return inner.args[0] if inner is not None and inner.name == "scalar.not_" else None


def _either(op: Operator, makers: Makers) -> Operand:
    _, a, b = op.args
    return a if a is b and isinstance(a, Variable) else None


def _absorbing(absorbs: bool) -> Callable[[Operator, Makers], Operand]:
    """A flag beside a known one: ``absorbs`` is the answer whatever the other one is."""

    def rule(op: Operator, makers: Makers) -> Operand:
        a, b = op.args
        for known, other in ((a, b), (b, a)):
            if known is absorbs:
                return absorbs
            if known is (not absorbs) and _kind(other) == "bool":
                return other
        return None

    return rule


_RULES: dict[str, Callable[[Operator, Makers], Operand]] = {
    "scalar.add": _neutral(0),
    "scalar.sub": _neutral(0, right_only=True),
    "scalar.mul": _neutral(1),
    "scalar.floordiv": _neutral(1, right_only=True),
    "scalar.and_": _absorbing(False),
    "scalar.or_": _absorbing(True),
    "scalar.bool": _itself,
    "scalar.int": _itself,
    "scalar.float": _itself,
    "scalar.not_": _not_not,
    "scalar.select": _either,
}
"""What an Operator's result is, if its kind is that of the Operator's result, too; None where that is not known."""

PASS = Pass("identities", "numbers that are one of their operands, values that all paths pass on", simplify)

__all__ = ["PASS", "simplify"]
