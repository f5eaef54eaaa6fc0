"""``cond`` and ``switch``: C's ``if``, and slots that the paths assign.

    %y = cond(%flag) { yield %a } { yield %x }      ->      if (n3) { b9 = b4; ... } else { b9 = b1; ... }
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir import UNDEF, Block, Operator, TensorType, Variable
from runtime.native.lowering import Lowering
from runtime.native.values import HALVES, Nothing, Tensor, Unsupported, Value


def flag_of(low: Lowering, operand: object) -> str:
    """What a branch or loop tests, as a C expression."""
    if isinstance(operand, Variable) and isinstance(operand.type, TensorType):
        t = low.tensor(operand)
        if t.dtype in HALVES:
            raise Unsupported("a flag of 16 bits")
        if t.pending:
            low.flush()
        for dim in t.dims:
            if dim != 1:
                low.w.bail(f"{dim} != 1")
        return t.reg or f"p{t.n}[0]"
    return low.number(operand).text


def emit_cond(low: Lowering, op: Operator) -> None:
    """One of two Blocks."""
    flag = flag_of(low, op.args[0])
    low.flush()
    spill(low, op.blocks)
    with _Join(low, op) as join:
        for header, block in zip((f"if ({flag})", "else"), op.blocks):
            join.path(header, block)


def emit_switch(low: Lowering, op: Operator) -> None:
    """One of many Blocks, counted as Python indexes."""
    at = low.w.local("i64", "y")
    index = low.integer(op.args[0])
    low.flush()
    spill(low, op.blocks)
    count = len(op.blocks)
    low.w.line(f"{at} = {index.text};")
    low.w.bail(f"{at} < -{count} || {at} >= {count}")
    low.w.line(f"{at} += {at} < 0 ? {count} : 0;")
    with _Join(low, op) as join:
        for number, block in enumerate(op.blocks):
            join.path(("else " if number else "") + f"if ({at} == {number})", block)


class _Join:
    """The paths of one branch, and what they give."""

    def __init__(self, low: Lowering, op: Operator) -> None:
        self.low, self.op = low, op
        self.unread = set(low.live.unread[id(op)])
        self.slots: dict[Variable, Value] = {}
        self.given: dict[Variable, list[Value]] = {out: [] for out in op.outputs}

    def __enter__(self) -> _Join:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            return
        for out in self.op.outputs:
            if out in self.unread:
                continue
            slot = self.slots.get(out)
            if slot is None:
                self.low.give(out, Nothing())
            else:
                self.low.give(out, self.low.settle(slot, self.given[out], out.type))

    def path(self, header: str, block: Block) -> None:
        """One path."""
        low = self.low
        raised = bool(block.ops) and block.ops[-1].name == "raise"
        with low.w.block(header):
            ended = raised and all(value is UNDEF for value in block.yields)
            if ended and not low.alone:
                low.w.line("goto bail;")  # Python raises it
                return
            low.enter(block)
            low.operators(block.ops)
            if ended:
                return
            low.flush()
            for out, value in zip(self.op.outputs, block.yields):
                if out not in self.unread:
                    self._yield(out, low.value(value))
            low.flush()
            low.drop(low.live.at_exit[id(block)])

    def _yield(self, out: Variable, value: Value) -> None:
        low = self.low
        slot = self.slots.get(out)
        if slot is None:
            if isinstance(value, Nothing):
                try:
                    slot = low.slot(value, out.type)
                except Unsupported:  # another path may tell
                    self.given[out].append(value)
                    return
            else:
                slot = low.slot(value, out.type)
            if self.given[out]:
                raise Unsupported("a path without a value, which nothing tells the kind of")
            self.slots[out] = slot
        low.assign(slot, value)
        self.given[out].append(value)


def spill(low: Lowering, blocks: Sequence[Block]) -> None:
    """Put into memory what Blocks read from outside and C has in a local: a path that did so would do it for itself."""
    for block in blocks:
        for var in low.live.captured(block):
            value = low.values.get(var)
            if isinstance(value, Tensor):
                low.memory(value)


__all__ = ["emit_cond", "emit_switch", "flag_of", "spill"]
