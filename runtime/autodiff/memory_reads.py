"""Operators that read a tensor's memory whatever its sizes are: ``as_strided`` and its like.

What leaves a Block is contiguous in the halves of a derivative, so these would find other elements there than eager's.
"""

from __future__ import annotations

from runtime.ir import Program
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.walk import blocks

_OF_MEMORY = ("aten.as_strided.", "aten.as_strided_.", "aten.as_strided_copy.", "aten.as_strided_scatter.")


def of_memory(program: Program) -> bool:
    """Whether an operator reads the memory of what may have left a branch or loop."""
    ops = [op for block in blocks(program) for op in block.ops]
    return any(op.name.startswith(_OF_MEMORY) for op in ops) and any(
        flow_of(op).kind not in (Kind.PLAIN, Kind.INLINE) for op in ops)


__all__ = ["of_memory"]
