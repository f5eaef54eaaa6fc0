"""Whether tensors are only read in a Block: who writes them, keeps them or compares them with others sees no copy."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.ir import Block, Operator, Variable, leaves
from runtime.ir.definition import definition_of
from runtime.ir.ports import handed_in, is_path
from runtime.ops import aten


class Uses:
    """Where each Variable is read in a Block and the Blocks inside: asked often, the Block is looked at once."""

    def __init__(self, body: Block) -> None:
        self._readers: dict[Variable, list[Operator]] = {}
        blocks = [body]
        for op in body.walk():
            blocks += op.blocks
            for var in op.inputs:
                self._readers.setdefault(var, []).append(op)
        self._left = {var for block in blocks for var in leaves(block.yields)}

    def escape(self, values: Iterable[Variable]) -> bool:
        """Whether values, or what may be views of them, are more than read: they leave a Block, or go where they may
        stay."""
        shared = dict.fromkeys(values)
        todo = list(shared)
        for var in todo:
            if var in self._left:
                return True
            for op in self._readers.get(var, ()):
                if not op.name.startswith("aten."):
                    if not _only_looks(op, var):
                        return True
                    continue
                if aten.may_alias(aten.resolve(op.name), op.args, op.kwargs):
                    todo += [out for out in op.outputs if out not in shared]
                    shared.update(dict.fromkeys(op.outputs))
        return False


def _only_looks(op: Operator, var: Variable) -> bool:
    """Whether an Operator reads a flag or number of a value, and keeps nothing of it."""
    return definition_of(op.name).only_reads or (is_path(op) and var not in handed_in(op))


def escapes(values: Iterable[Variable], body: Block) -> bool:
    """The same of one Block, asked once."""
    return Uses(body).escape(values)


__all__ = ["Uses", "escapes"]
