"""Results that are views: taken anew of the result, or value, that they are views of, so that autograd knows of it.

    t = x * 2; return t, t[0]     ->     node: x -> t        t[0] is taken of the caller's t

A view that a node itself gives may not be written, nor its base; these may be, by the caller, as eager's. Views of
arguments are such results where others are computed from one; else whoever calls takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from runtime.autodiff.residuals import is_cheap
from runtime.autodiff.stages import computed_from
from runtime.ir import Block, Input, Operand, Operator, Program, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.walk import copy_block


@dataclass(eq=False)
class ViewResult:
    """A result that is a view. ``program``: base, others -> the view."""

    program: Program
    base: int
    """Position of the base among the yields of the forward half."""
    others: list[int]
    """Positions of what else the view operators read: numbers, and tensors of which they take the sizes."""
    stage: int


@dataclass(eq=False)
class Chain:
    """View operators from a base to a result."""

    base: Variable
    ops: list[Operator]
    result: Variable

    def others(self) -> list[Variable]:
        """What the operators read beside what they take views of."""
        own = {self.base, *(out for op in self.ops for out in op.outputs)}
        return list(dict.fromkeys(var for op in self.ops for var in op.inputs if var not in own))

    def program(self, name: str) -> Program:
        """The operators as a Program of their own."""
        mapping: dict[Variable, Operand] = {}
        block = copy_block(Block([self.base, *self.others()], self.ops, [self.result]), mapping)
        return Program(f"{name}.view", block, [Input(arg, arg.name) for arg in block.args])


def chains(
    block: Block, results: Collection[Variable], is_active: Callable[[Variable], bool],
    bases: Collection[Variable], known: Collection[Variable],
) -> dict[Variable, Chain]:
    """For each result that is a view of something the Program computed: how it is taken, from the nearest result.

    ``bases``: arguments that views may be taken of. ``known``: results that are views of arguments, also where an
    operator may give a copy (``reshape``).
    """
    producers = {out: op for op in block.ops for out in op.outputs}
    found: dict[Variable, Chain] = {}
    for result in results:
        ops: list[Operator] = []
        base = result
        sure = result in known
        while (op := producers.get(base)) is not None and (source := _viewed(op, sure)) and is_active(source):
            ops.insert(0, op)
            base = source
            if base in results:
                break
        if ops and (base in producers or base in bases):
            found[result] = Chain(base, ops, result)
    return found


def ancestors(program: Program, skip: Collection[int]) -> frozenset[int]:
    """Those of ``skip`` that are views of arguments, if other results may be computed from one of them."""
    yields, unwritten = program.block.yields, unwritten_arguments(program)
    given = {var for number in skip if isinstance(var := yields[number], Variable) and var not in unwritten}
    if not given:
        return frozenset()
    viewed = chains(program.block, given, lambda _: True, unwritten, given)
    found = frozenset(number for number in skip if yields[number] in viewed)
    needed = computed_from(program, [number for number in skip if number not in found]) if found else frozenset()
    return frozenset() if needed.isdisjoint(viewed) else found


def unwritten_arguments(program: Program) -> frozenset[Variable]:
    """The arguments whose content is the same when the Program has run."""
    return frozenset(program.block.args).difference(write.target for write in program.writes)


def _viewed(op: Operator, known: bool) -> Variable | None:
    """The tensor that an Operator's results are views of. ``known``: they are, if they may be."""
    if not op.name.startswith("aten.") or op.grad_mode == "off" or not (known or is_cheap(op)):
        return None
    viewed = definition_of(op.name).views(op)
    if len(viewed) != 1 or not all(isinstance(var.type, TensorType) for var in (*viewed, *op.outputs)):
        return None
    return viewed[0]


__all__ = ["Chain", "ViewResult", "ancestors", "chains", "unwritten_arguments"]
