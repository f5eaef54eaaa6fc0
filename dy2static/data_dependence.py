"""Control flow that decides on data: on what a tensor holds when the Program runs, and not on Python's numbers alone.

    if x.sum() > 0: ...        decides on data
    for i in range(1000): ...  does not, though it may be a loop of the Program
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.ir import Operator, Program, ScalarType, Variable
from runtime.ir.flow import Kind
from runtime.ir.operator import leaves
from runtime.ir.ports import flow_of

_NAMES = {"if": "if", "elif": "elif", "while": "while", "for": "for", "assert": "assert", "match": "match"}


def deciding_on_data(program: Program) -> Iterator[Operator]:
    """The branches and loops of a Program that decide on data, in program order."""
    known = _from_data(program)
    for op in program.block.walk():
        flow = flow_of(op)
        if flow.is_path and any(var in known for var in leaves(list(flow.decides(op)))):
            yield op


def name_of(op: Operator) -> str:
    """What the user wrote for a branch or loop, with its line.

    >>> name_of(Operator("cond"))
    'a branch'
    """
    what = "a loop" if flow_of(op).kind is Kind.LOOP else "a branch"
    at = op.location
    if at is None:
        return what
    word = _NAMES.get(at.text.strip().partition(" ")[0].rstrip(":("), "")
    return f"{what}{f' ({word})' if word else ''} in line {at.line} of {at.file.rpartition('/')[2]}"


def _from_data(program: Program) -> set[Variable]:
    """Variables that depend on what tensors hold: all that are no numbers, and numbers computed from such."""
    ops = list(program.block.walk())
    known = {var for var in program.block.args if not isinstance(var.type, ScalarType)}
    size = -1
    while size != len(known):  # what a loop carries comes round again
        size = len(known)
        for op in ops:
            _follow(op, known)
    return known


def _follow(op: Operator, known: set[Variable]) -> None:
    flow = flow_of(op)
    known.update(out for out in op.outputs if not isinstance(out.type, ScalarType))
    known.update(arg for block in op.blocks for arg in block.args if not isinstance(arg.type, ScalarType))
    if not flow.is_path:
        if op.blocks or any(var in known for var in op.inputs):
            known.update(op.outputs, *(block.args for block in op.blocks))
        return
    decided = any(var in known for var in leaves(list(flow.decides(op))))
    for port in flow.ports(op):
        coming = [op.args[port.arg]] if port.arg is not None else []
        coming += [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]
        if decided or any(var in known for var in leaves(list(coming))):
            known.update(block.args[place] for block, place in zip(op.blocks, port.inner) if place is not None)
            known.update([op.outputs[port.output]] if port.output is not None else [])


__all__ = ["deciding_on_data", "name_of"]
