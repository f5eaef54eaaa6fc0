"""Stages: where a Program becomes several autograd nodes, because one of its results is computed from another.

    h = f(x); y = g(h); return h, y     ->     node 1: x -> h        node 2: h -> y

The forward half stays one Program that runs once. What is cut is the tape: each stage has a backward Program of its
own, from the gradients of what it computed to those of what it read of earlier stages. So ``h`` is an ancestor of
``y``, as in eager: hooks on it, ``retain_grad`` and ``autograd.grad`` see y's share. Results that come out of one loop
or branch are results of one stage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from runtime.autodiff.residuals import reads, silence
from runtime.ir import ArrayType, Block, Input, Operand, Operator, Program, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.ports import hands_on, may_pass, passed
from runtime.ir.walk import copy_block


@dataclass(eq=False)
class Stage:
    """One autograd node: part of a Program, and its backward half.

    backward: residuals, gradients of results  ->  gradients of the arguments in ``needs``, then of ``leaves``
    """

    backward: Program
    results: list[int]
    """What the node gives: positions of yields of the forward half."""
    needs: list[int]
    """Positions of the arguments whose gradients ``backward`` yields, in order."""
    leaves: list[int]
    """What it reads of earlier stages: positions of yields of the forward half."""
    residuals: list[int]
    """Positions of the yields of the forward half that backward reads."""
    start: int = 0
    """The first of its Operators in the Program's main Block."""
    given: list[Variable] = field(default_factory=list)
    """The Program's own Variables behind ``results``."""
    read: list[Variable] = field(default_factory=list)
    """The Program's own Variables behind ``leaves``."""
    together: dict[int, list[int]] = field(default_factory=dict)
    """Results that one eager node gives with others, each as its number among the results of the stage -> those whose
    gradients reach that node."""
    whole: Program | None = None
    """``backward`` for gradients that all are there: they are added up in eager's order, and nothing is asked."""


def computed_from(program: Program, skip: Collection[int]) -> frozenset[Variable]:
    """Results that other results may be computed from, by operators that pass gradients on."""
    results = {
        var for index, var in enumerate(program.block.yields)
        if index not in skip and isinstance(var, Variable) and _may_carry(var)
    }  # fmt: skip
    for op in program.block.ops:
        if _stops(op):  # a view that was made without gradients passes none on
            results.difference_update(op.outputs)
    if len(results) < 2:
        return frozenset()
    through = passed_through(program, results)
    passing = {var for found in through.values() for var in found}
    sources: dict[Variable, frozenset[Variable]] = {}
    found: set[Variable] = set()
    for op in program.block.ops:
        reached: set[Variable] = set()
        if not _stops(op):
            for var in reads(op):
                reached |= sources.get(var, frozenset())
                if var in results or var in passing:
                    reached.add(var)
        if not reached:
            continue
        for out in op.outputs:
            if _may_carry(out):
                sources[out] = frozenset(reached)
                if out in results:
                    found |= reached
    return frozenset(found)


def passed_through(program: Program, results: Collection[Variable]) -> dict[Variable, frozenset[Variable]]:
    """For results of branches, loops and recursions: what they give of before as it is (``if c: h = g(h)``).

    A list has those among its items (``if c: xs.append(h)``), and so has what is taken from one.
    """
    before: set[Variable] = set()
    found: dict[Variable, frozenset[Variable]] = {}
    for op in program.block.ops:
        ways: dict[Variable, set[Variable]] = {}
        if hands_on(op):
            ways = {out: set(op.inputs) for out in op.outputs}
        elif may_pass(op) and not has_custom_gradients(op):
            ways = {out: passed(op, position, held=True) for position, out in enumerate(op.outputs) if _may_carry(out)}
        for out, sources in ways.items():
            sources &= before
            given = {var for var in sources if isinstance(var.type, TensorType) and _may_carry(var)}
            given |= {more for var in sources for more in found.get(var, ())}  # what it was given itself
            if given:
                found[out] = frozenset(given)
        before.update(op.outputs)
    return {out: given for out, given in found.items() if out in results}


def of_one_node(program: Program, given: Sequence[Variable]) -> dict[int, list[int]]:
    """``Stage.together`` of a stage that gives these Variables."""
    found: dict[int, list[int]] = {}
    for place, op in enumerate(program.block.ops):
        one_node = op.name.startswith("aten.") or definition_of(op.name).own_gradient is not None
        if not one_node or sum(map(_may_carry, op.outputs)) < 2:
            continue
        mine = [number for number, var in enumerate(given) if var in op.outputs]
        if not mine:
            continue
        reached = set(op.outputs)
        for later in program.block.ops[place + 1 :]:
            if not _stops(later) and not reached.isdisjoint(reads(later)):
                reached.update(filter(_may_carry, later.outputs))
        found.update((number, [at for at, var in enumerate(given) if var in reached]) for number in mine)
    return found


def has_custom_gradients(op: Operator) -> bool:
    """Whether a value may come out as it went in, with a gradient of its own (``autograd.Function``)."""
    return any(definition_of(inner.name).own_gradient is not None for block in op.blocks for inner in block.walk())


def _may_carry(var: Variable) -> bool:
    kind = var.type.element if isinstance(var.type, ArrayType) else var.type
    return isinstance(kind, TensorType) and (
        kind.dtype is None or kind.dtype.is_floating_point or kind.dtype.is_complex
    )


def _stops(op: Operator) -> bool:
    return op.name.startswith("aten.detach.") or (op.grad_mode == "off" and op.name.startswith("aten."))


def stage_program(program: Program, stage: Stage) -> Program:
    """The whole Program, with what the stage read of earlier ones as arguments: for running a stage again.

    Its earlier Operators compute what the stage reads besides. What the Program prints and reports is left out.
    """
    mapping: dict[Variable, Operand] = {}
    block = copy_block(Block(list(program.block.args), program.block.ops[: stage.start]), mapping)
    leaves = {var: Variable(f"{var.name}.leaf", var.type, var.hint) for var in stage.read}
    mapping.update(leaves)
    rest = copy_block(Block([], program.block.ops[stage.start :], list(stage.given)), mapping)
    block = Block([*block.args, *leaves.values()], [*block.ops, *rest.ops], rest.yields)
    silence(block)
    return Program(f"{program.name}.stage", block, [Input(arg, arg.name) for arg in block.args])


__all__ = ["Stage", "computed_from", "of_one_node", "passed_through", "stage_program"]
