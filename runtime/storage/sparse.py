"""Sparse tensors of a loaded Program: their indices are within their sizes, whatever the file says.

torch believes the indices that a sparse tensor is made of, and kernels write where those point to. So a loaded Program
has them looked at before one is made, and gives its indices and values as copies: nothing can write into them later.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from runtime.ir import Operand, Operator, Program, Variable
from runtime.ir.block import Block
from runtime.ops.sparse import MADE, PARTS

CHECK = "aten._validate_sparse_coo_tensor_args.default"
COPY = "aten.clone.default"


def secure(program: Program) -> None:
    """Let a Program check what sparse tensors are made of, and take copies of their parts."""
    uses = Counter(var for op in program.block.walk() for var in op.inputs)
    uses.update(one for block in _blocks(program.block) for one in block.yields if isinstance(one, Variable))
    for block in _blocks(program.block):
        _secure(block, uses)


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.walk():
        yield from op.blocks


def _secure(block: Block, uses: Counter[Variable]) -> None:
    found: list[Operator] = []
    for op, after in itertools.zip_longest(block.ops, block.ops[1:]):
        if op.name == MADE:
            given = tuple(_argument(op, place, name) for place, name in enumerate(("indices", "values", "size")))
            given = (*given, op.kwargs.get("is_coalesced"))
            if not (found and found[-1].name == CHECK and found[-1].args == given):
                found.append(Operator(CHECK, given, location=op.location))
        found.append(op)
        if op.name.rpartition(".")[0] in PARTS and len(op.outputs) == 1:
            (out,) = op.outputs
            if after is not None and after.name == COPY and after.args == (out,) and uses[out] == 1:
                continue
            inner = Variable(f"{out.name}.part", out.type)
            op.outputs = (inner,)
            found.append(Operator(COPY, (inner,), outputs=(out,), location=op.location))
    block.ops[:] = found


def _argument(op: Operator, place: int, name: str) -> Operand:
    return op.args[place] if place < len(op.args) else op.kwargs.get(name)


__all__ = ["secure"]
