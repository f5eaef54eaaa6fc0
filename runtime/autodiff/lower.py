"""Programs without ``gradients``: every one of them is replaced by the Operators that compute it.

    %loss = f(%w)                            %loss, %residuals = f(%w)
    %g = gradients([%loss], [%w])     ->     %g = f'(%residuals)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from runtime.autodiff import replay
from runtime.autodiff.assumed import Assumed
from runtime.autodiff.failures import NotDifferentiable
from runtime.autodiff.memory_reads import of_memory, shown
from runtime.autodiff.residuals import reads
from runtime.ir import Block, Input, Operand, Operator, Program, Variable
from runtime.ir.definition import definition_of
from runtime.ir.program import Parameter, Write
from runtime.passes.dead_code import does_more, has_effect, remove_dead
from runtime.tracer.memory.conditions import ALWAYS


def targets(program: Program) -> list[Operator]:
    """The ``gradients`` Operators of a Program, in program order."""
    return [op for op in program.block.walk() if op.name == "gradients"]


def lower_gradients(
    program: Program, arguments: Sequence[torch.Tensor], skip: Sequence[int] = ()
) -> tuple[Program, list[Assumed]]:
    """The Program with its ``gradients`` written out, and what that assumes of the sizes of arguments.

    ``arguments`` have the metadata of its inputs and parameters; the results at ``skip`` are rebuilt elsewhere.

    Raises:
        NotDifferentiable: One of them can only be computed by torch's autograd at run time.
    """
    if of_memory(program):
        raise NotDifferentiable("as_strided of what a branch or loop may give")
    if shown(program, skip):
        raise NotDifferentiable("a result that may be a view on a path")
    limits: list[Assumed] = []
    while found := targets(program):
        inside = set(_inside_functions(program))
        outside = [target for target in found if target not in inside]
        if not outside:  # the Operator stays for what is asked later, and with it its Blocks
            raise NotDifferentiable("gradients that an autograd.Function asks for in its forward or backward")
        program, _, limit = lower_one(program, arguments, outside[0])
        limits += [] if limit is None else [limit]
    return program, limits


def _inside_functions(program: Program) -> Iterator[Operator]:
    """The Operators in the Blocks of Operators that bring their own gradient along."""
    for op in program.block.walk():
        if definition_of(op.name).own_gradient is not None:
            for block in op.blocks:
                yield from block.walk()


def lower_one(
    program: Program, arguments: Sequence[torch.Tensor], target: Operator, blocked: Sequence[Variable] = ()
) -> tuple[Program, dict[Variable, Operand], Assumed | None]:
    """Write out one of them; the new Program, what the old Variables of the main Block are called in it, and what is
    assumed of the sizes of ``arguments``.

    No gradient flows through ``blocked``.
    """
    with replay.replaying(program.name, lowering=True) as (session, forward):
        forward.target = target
        inputs: Any = target.args[1]
        forward.wanted = frozenset(inputs)
        forward.blocked = frozenset(blocked)
        forward.idle = _idle(program.block, target)
        forward.may_need = _may_need(program, arguments)
        args = [replay.argument(session, forward, old, real) for old, real in zip(program.block.args, arguments)]
        forward.activity.update((arg, ALWAYS) for arg in program.block.args if arg in forward.wanted)
        forward.block(program.block)
        yields = [forward.result(o) for o in program.block.yields]
        known = {old: _name(session, forward, old) for old in _assigned(program.block)}
        limit = replay.assumed(session, forward, program, args, arguments)
    block = session.scope.block
    block.args, block.yields = args, yields
    renamed = dict(zip(program.block.args, args))
    lowered = Program(
        program.name,
        block,
        [Input(renamed[one.var], one.name) for one in program.inputs],
        [Parameter(renamed[one.var], one.name, one.kind, one.requires_grad) for one in program.params],
        program.output,
        [Write(renamed[write.target], write.index) for write in program.writes],
        list(program.assumes),
    )
    assert session.replaying is not None
    derived = session.replaying.derived
    results = [*yields, *(value for value in known.values() if isinstance(value, Variable))]
    remove_dead(block, results, lambda op: does_more(op) if op in derived else has_effect(op))
    return lowered, known, limit


def _idle(block: Block, target: Operator) -> frozenset[Operator]:
    """Operators of the main Block that the gradient does not go through: nothing ``target`` reads depends on them."""
    needed: set[Variable] = set()
    kept: set[Operator] = set()
    for op in reversed(block.ops):
        if op is target or any(inner is target for one in op.blocks for inner in one.walk()):
            needed.update(reads(op))
            kept.add(op)
        elif not needed.isdisjoint(op.outputs):
            needed.update(reads(op))
            kept.add(op)
    return frozenset(block.ops) - kept


def _may_need(program: Program, arguments: Sequence[Any]) -> frozenset[Variable]:
    """What may need a gradient in eager, besides what leads from what was asked for."""
    found = {arg for arg, real in zip(program.block.args, arguments)
             if isinstance(real, torch.Tensor) and real.requires_grad}  # fmt: skip
    before = -1
    while len(found) > before:  # what a loop carries comes from its end
        before = len(found)
        for op in program.block.walk():
            read = (var for block in op.blocks for var in (*block.captures(), *block.yields))
            if op.name == "grad.leaf":
                found.update(op.outputs)
            elif op.name != "aten.detach.default" and not found.isdisjoint((*op.inputs, *read)):
                found.update(op.outputs, *(block.args for block in op.blocks))
    return frozenset(found)


def _assigned(block: Block) -> list[Variable]:
    return [*block.args, *(out for op in block.ops for out in op.outputs)]


def _name(session: replay.Session, forward: replay.Forward, old: Variable) -> Operand:
    return session.operand(forward.plain(old)) if old in forward.env else None
