"""Residuals: what a backward Block reads of its forward Block, and how little of it is kept.

A backward Block is recorded as if it could read every value of its forward Block. Afterwards what it reads is
*rebuilt* in the backward Block where that costs nothing (views) or was asked for (recompute), and *kept* otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from runtime.ir import Block, Operand, Operator, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.walk import copy_block, map_operand
from runtime.ops import aten
from runtime.ops.registry import definition

Rebuilds = Callable[[Operator], int | None]
"""The region of an Operator whose results are computed again rather than kept; None: they are kept."""
ANY_REGION = 0
"""That of an Operator which may be computed again anywhere: a view."""


def inner_variables(block: Block) -> set[Variable]:
    """Everything assigned in a Block or inside it."""
    found = set(block.args)
    for op in block.walk():
        found.update(op.outputs)
        for inner in op.blocks:
            found.update(inner.args)
    return found


def substitute(block: Block, mapping: dict[Variable, Variable]) -> None:
    """Replace Variables read in a Block, at any depth."""
    if mapping:
        for op in block.ops:
            substitute_in(op, mapping)
        block.yields = [map_operand(operand, lambda var: mapping.get(var, var)) for operand in block.yields]


def substitute_in(op: Operator, mapping: dict[Variable, Variable]) -> None:
    """Replace Variables read by an Operator and in its Blocks."""

    def change(var: Variable) -> Operand:
        return mapping.get(var, var)

    op.args = tuple(map_operand(arg, change) for arg in op.args)
    op.kwargs = {key: map_operand(value, change) for key, value in op.kwargs.items()}
    for inner in op.blocks:
        substitute(inner, mapping)


def reads(op: Operator) -> list[Variable]:
    """Everything an Operator reads, what its Blocks capture included."""
    return [*op.inputs, *(var for block in op.blocks for var in block.captures())]


def is_cheap(op: Operator) -> bool:
    """Whether an Operator only gives another view of its operand, or an empty list."""
    if op.name == "array.new":
        return not op.inputs
    return op.name.startswith("aten.") and bool(aten.is_view(aten.resolve(op.name)))


def repeatable(op: Operator) -> bool:
    """Whether an Operator gives the same results when it runs again, and does nothing else."""
    ops = [op, *(inner for block in op.blocks for inner in block.walk())]
    return not any(definition(one.name).random or definition(one.name).effect
               or flow_of(one).kind is Kind.FUNCTION or definition(one.name).again(one) for one in ops)  # fmt: skip


def silence(block: Block) -> None:
    """Leave out what only tells something: it was told when the Block ran first."""
    block.ops[:] = [op for op in block.ops if not definition(op.name).says]
    for op in block.ops:
        for inner in op.blocks:
            silence(inner)


def rebuild(
    forward: Block, block: Block, wanted: list[Variable], rebuilds: Rebuilds, new_name: Callable[[str], str]
) -> list[Variable]:
    """Compute some of the ``wanted`` values of ``forward`` again in ``block``, each right before its first use.

        h = tanh(x); v = t(h)      |     g2 = mm(g, v)
        ->                         |     v.2 = t(h); g2 = mm(g, v.2)         (h is kept)

    What one region gives to another is kept: else the first use of the last region would compute all of them.

    Returns what is left to be kept.
    """
    producers = {out: op for op in forward.ops for out in op.outputs}
    own = {*producers, *forward.args}
    handed_on = _handed_on(producers, wanted, rebuilds)
    again: set[Operator] = set()
    kept: dict[Variable, None] = {}
    pending = list(wanted)
    seen: set[Variable] = set()
    while pending:
        var = pending.pop(0)
        if var in seen:
            continue
        seen.add(var)
        op = producers.get(var)
        if op is None or var in handed_on or rebuilds(op) is None:
            kept[var] = None
            continue
        again.add(op)
        pending += [source for source in reads(op) if source in own]
    if again:
        _insert(block, producers, again, kept, new_name)
    return list(kept)


def _handed_on(
    producers: dict[Variable, Operator], wanted: list[Variable], rebuilds: Rebuilds
) -> set[Variable]:
    """What regions give that others read."""
    found: set[Variable] = set()
    pending = [(var, ANY_REGION) for var in wanted]
    seen: set[tuple[Variable, int]] = set()
    while pending:
        var, reader = pending.pop()
        op = producers.get(var)
        mine = None if op is None else rebuilds(op)
        if op is None or mine is None or (var, reader) in seen:
            continue
        seen.add((var, reader))
        if mine != ANY_REGION and reader not in (ANY_REGION, mine):
            found.add(var)
            continue
        pending += [(source, mine if mine != ANY_REGION else reader) for source in reads(op)]
    return found


def stem(name: str) -> str:
    """The user's part of a Variable's name."""
    stem = name.partition(".")[0]
    return "" if stem.isdigit() else stem


def _insert(
    block: Block, producers: dict[Variable, Operator], again: set[Operator], kept: Collection[Variable],
    new_name: Callable[[str], str],
) -> None:
    mapping: dict[Variable, Operand] = {}
    ops: list[Operator] = []

    def need(var: Variable) -> None:
        op = producers.get(var)
        if op is None or op not in again or var in mapping or var in kept:
            return
        for source in reads(op):
            need(source)
        copy = copy_block(Block([], [op], []), mapping, lambda name: new_name(stem(name)))
        ops.extend(copy.ops)

    for op in block.ops:
        for var in reads(op):
            need(var)
        ops.append(op)
    for operand in block.yields:
        map_operand(operand, lambda var: need(var))
    renamed = {old: new for old, new in mapping.items() if isinstance(new, Variable) and old not in kept}
    block.ops = ops
    substitute(block, renamed)
