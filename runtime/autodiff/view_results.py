"""Results that are views: taken anew of the result, or value, that they are views of, so that autograd knows of it.

    t = x * 2; return t, t[0]     ->     node: x -> t        t[0] is taken of the caller's t

A view that a node itself gives may not be written, nor its base; these may be, by the caller, as eager's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from runtime.autodiff.residuals import is_cheap
from runtime.ir import Block, Input, Operand, Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.walk import copy_block


@dataclass(eq=False)
class ViewResult:
    """A result that is a view. ``program``: base, numbers -> the view."""

    program: Program
    base: int
    """Position of the base among the yields of the forward half."""
    numbers: list[int]
    """Positions of the numbers that the view operators read."""
    stage: int


@dataclass(eq=False)
class Chain:
    """View operators from a base to a result."""

    base: Variable
    ops: list[Operator]
    result: Variable

    def numbers(self) -> list[Variable]:
        """What the operators read beside tensors."""
        return list(dict.fromkeys(var for op in self.ops for var in op.inputs if isinstance(var.type, ScalarType)))

    def program(self, name: str) -> Program:
        """The operators as a Program of their own."""
        mapping: dict[Variable, Operand] = {}
        block = copy_block(Block([self.base, *self.numbers()], self.ops, [self.result]), mapping)
        return Program(f"{name}.view", block, [Input(arg, arg.name) for arg in block.args])


def chains(
    block: Block, results: Collection[Variable], is_active: Callable[[Variable], bool]
) -> dict[Variable, Chain]:
    """For each result that is a view of something the Program computed: how it is taken, from the nearest result."""
    producers = {out: op for op in block.ops for out in op.outputs}
    found: dict[Variable, Chain] = {}
    for result in results:
        ops: list[Operator] = []
        base = result
        while (op := producers.get(base)) is not None and (source := _viewed(op)) is not None and is_active(source):
            ops.insert(0, op)
            base = source
            if base in results:
                break
        if ops and base in producers:
            found[result] = Chain(base, ops, result)
    return found


def _viewed(op: Operator) -> Variable | None:
    """The one tensor that an Operator's results are views of."""
    if not is_cheap(op) or op.name == "array.new" or op.grad_mode == "off":
        return None
    tensors = [var for var in op.inputs if not isinstance(var.type, ScalarType)]
    if len(tensors) != 1 or not all(isinstance(var.type, TensorType) for var in (*tensors, *op.outputs)):
        return None
    return tensors[0]


__all__ = ["Chain", "ViewResult", "chains"]
