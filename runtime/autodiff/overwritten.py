"""Results that were written where autograd did not see it, after something was computed of what they were before.

    l = h.sum()
    with torch.no_grad(): h.clamp_(min=0)
    return h, l            for autograd the caller's h is what l was computed of; in the Program it is another value

A gradient of ``l`` by ``h`` would not find its way: PyTorch's autograd differentiates such a Program at run time.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.ir import Operator, Program, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of


def overwritten(program: Program) -> Iterator[Variable]:
    """What results were before such writes, where something else reads it."""
    makers = {out: op for op in program.block.ops for out in op.outputs}
    written = {write.index for write in program.writes}
    readers: dict[Variable, set[Operator]] | None = None
    for index, var in enumerate(program.block.yields):
        seen: set[Variable] = set()
        todo = [] if index in written or not isinstance(var, Variable) else [var]
        while todo:
            value = todo.pop()
            op = makers.get(value)
            if op is None or value in seen:
                continue
            seen.add(value)
            befores = list(_before(op, value))
            if befores and readers is None:
                readers = _readers(program)
            for before in befores:
                if readers is not None and len(readers.get(before, ())) > 1:
                    yield before
            todo += befores


def _before(op: Operator, value: Variable) -> Iterator[Variable]:
    """What a value was before an unseen write that an Operator is, or has in a path or iteration."""
    kind = flow_of(op).kind
    if kind is Kind.INLINE:
        place = op.outputs.index(value)
        if place < len(op.args) and isinstance(op.args[place], Variable) and _is_unseen(op):
            yield op.args[place]
    elif kind in (Kind.BRANCH, Kind.LOOP) and any(
            flow_of(inner).kind is Kind.INLINE and _is_unseen(inner) for block in op.blocks for inner in block.walk()):
        given = [*op.inputs, *(var for block in op.blocks for var in block.captures())]
        yield from (var for var in dict.fromkeys(given) if var.type == value.type)


def _is_unseen(update: Operator) -> bool:
    """Whether autograd does not see a write: under ``no_grad``, or through ``detach()`` or ``.data``."""
    (block,) = update.blocks
    return update.grad_mode == "off" or any(
        op.name == "aten.detach.default" and op.args[0] in block.args for op in block.ops)


def _readers(program: Program) -> dict[Variable, set[Operator]]:
    found: dict[Variable, set[Operator]] = {}
    for op in program.block.ops:
        for var in (*op.inputs, *(one for block in op.blocks for one in block.captures())):
            found.setdefault(var, set()).add(op)
    return found


__all__ = ["overwritten"]
