"""``switch``: one Block of many, chosen as Python indexes a sequence."""

from __future__ import annotations

from operator import index

from runtime.executor.emitter import Emitter
from runtime.ir import Operator


def position(value: object, count: int) -> int:
    """The index counted from the start. Errors raised: IndexError("list index out of range")."""
    found = index(value)  # type: ignore[arg-type]  # a TypeError is the right answer to anything without __index__
    if not -count <= found < count:
        raise IndexError("list index out of range")
    return found % count


def emit(emitter: Emitter, op: Operator) -> None:
    """``i = position(index, n)``, then one ``if i == ...`` for each Block."""
    unread = emitter.live.unread[id(op)]
    chosen = emitter.fresh("i")
    emitter.line(f"{chosen} = {emitter.bind(position, 'f')}({emitter.operand(op.args[0])}, {len(op.blocks)})")
    for number, block in enumerate(op.blocks):
        with emitter.indented(f"if {chosen} == {number}:"):
            emitter.enter(block)
            emitter.operators(block)
            emitter.read_yields(block, op.outputs, unread)
            emitter.line("pass")
