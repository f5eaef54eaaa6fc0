"""Whether tensors are only read in a Block: who writes them, keeps them or compares them with others sees no copy."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.ir import Block, Variable, leaves
from runtime.ops import aten

_READ = ("scalar.", "grad.needed")
_FLAGS = frozenset({"cond", "switch", "assert"})
"""What takes flags and numbers as arguments, and keeps none of them."""


def escapes(values: Iterable[Variable], body: Block) -> bool:
    """Whether values, or what may be views of them, are more than read in a Block: they leave one, or go where they
    may stay."""
    shared = set(values)
    blocks = [body]
    for op in body.walk():
        blocks += op.blocks
        if shared.isdisjoint(op.inputs):
            continue
        if not op.name.startswith("aten."):
            if op.name.startswith(_READ) or op.name in _FLAGS:
                continue
            return True
        if aten.may_alias(aten.resolve(op.name), op.args, op.kwargs):
            shared.update(op.outputs)
    return any(not shared.isdisjoint(leaves(block.yields)) for block in blocks)


__all__ = ["escapes"]
