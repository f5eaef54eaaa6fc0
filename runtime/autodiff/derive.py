"""From a Program to its forward and backward halves.

forward:  inputs, parameters           -> results, activity flags, residuals
backward: residuals, result gradients  -> gradients of inputs and parameters
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from runtime import torch_internals
from runtime.autodiff import replay
from runtime.autodiff.backward import Backward
from runtime.autodiff.dead import does_more, remove_dead
from runtime.autodiff.forward import any_of
from runtime.autodiff.residuals import rebuild, substitute
from runtime.autodiff.tape import Grads
from runtime.ir import ArrayType, Block, Input, Operand, Operator, Program, TensorType, Variable
from runtime.ir.tree import Leaf
from runtime.tracer.session import Session


@dataclass
class Derivative:
    """The two halves of a Program, for one choice of which arguments need gradients."""

    forward: Program
    backward: Program
    results: int
    """The first yields of ``forward`` are the Program's own."""
    flags: dict[int, int]
    """Result position -> position of the flag among the forward yields that says whether it needs a gradient."""
    differentiable: list[int]
    """Positions of the results that have a gradient, in the order of the backward Program's gradient arguments."""
    needs: list[int]
    """Positions of the arguments (inputs, then parameters) whose gradients ``backward`` yields, in order."""
    sized: bool = False
    """Whether it holds only for arguments of these very sizes: PyTorch's own derivative asked for one as a number."""


def derive(
    program: Program,
    arguments: Sequence[torch.Tensor],
    needs: Sequence[bool],
    skip: Sequence[int] = (),
    casting: tuple[tuple[str, bool, str], ...] = (),
) -> Derivative:
    """Differentiate a Program.

    Args:
        program: Any Program; it is not changed.
        arguments: Tensors with the metadata of its inputs and parameters, in order.
        needs: For each argument, whether its gradient is wanted.
        skip: Results through which no gradient flows (rebuilt elsewhere).
        casting: The autocast state that backward is called under; that of the forward half is the one in force.

    Raises:
        NotDifferentiable: An Operator's gradient cannot be written as a Program (yet).
    """
    with replay.replaying(f"{program.name}.forward") as (session, forward):
        args = [replay.argument(session, forward, old, real) for old, real in zip(program.block.args, arguments)]
        forward.activity.update((old, bool(need)) for old, need in zip(program.block.args, needs))
        tape = forward.block(program.block)
        yields: list[Operand] = [
            forward.result(o) for o in program.block.yields
        ]
        results = len(yields)
        differentiable = [
            index
            for index, o in enumerate(program.block.yields)
            if index not in skip and isinstance(o, Variable) and forward.is_active(o) and forward.can_carry(o)
        ]
        flags: dict[int, int] = {}
        for index in differentiable:
            active = forward.activity[program.block.yields[index]]
            if not isinstance(active, bool):
                flags[index] = len(yields)
                yields.append(any_of(session, active))
        with session.open("backward") as scope, torch_internals.casting_as(casting):
            session.autocast = casting
            scope.twin = root = session.scope.parent
            assert root is not None
            grads: Grads = {}
            grad_args: list[Variable] = []
            backward = Backward(session, forward)
            for index in differentiable:
                old = program.block.yields[index]
                arg = session.new_variable(backward.type_like(old))
                grad_args.append(arg)
                backward.add(grads, old, backward.grad_of(old, arg, len(differentiable) > 1))
            backward.block(tape, grads)
            wanted = [index for index, need in enumerate(needs) if need]
            for index in wanted:
                grad = grads.get(program.block.args[index])
                scope.block.yields.append(None if grad is None else backward.read(grad))
    block = root.block
    block.args = args
    remove_dead(scope.block, scope.block.yields, does_more)
    captured = [var for var in scope.block.captures() if var in root.names]
    residuals = rebuild(block, scope.block, captured, backward.rebuilds(), session.new_name)
    block.yields = [*yields, *residuals]
    remove_dead(block, block.yields)
    scope.block.args = [*residuals, *grad_args]
    _take_lists(session, scope.block, residuals)
    first = _half(f"{program.name}.forward", block, program)
    second = _half(f"{program.name}.backward", scope.block, None)
    sized = any(
        isinstance(var.type, TensorType) and session.dims(forward.env[old]) != var.type.shape
        for old, var in zip(program.block.args, args)
    )
    return Derivative(first, second, results, flags, differentiable, wanted, sized)


def _take_lists(session: Session, block: Block, residuals: list[Variable]) -> None:
    """Stacks of residuals belong to the backward half: they shrink while it goes."""
    mapping: dict[Variable, Variable] = {}
    takes: list[Operator] = []
    for var in residuals:
        if isinstance(var.type, ArrayType):
            taken = session.new_variable(var.type, "")
            takes.append(Operator("grad.take", (var,), {}, (taken,)))
            mapping[var] = taken
    substitute(block, mapping)
    block.ops[:0] = takes


def _half(name: str, block: Block, whole: Program | None) -> Program:
    half = Program(name, block, [Input(arg, arg.name) for arg in block.args])
    if whole is not None:
        half.assumes = list(whole.assumes)
    half.output = tuple(Leaf(index) for index in range(len(block.yields)))
    return half


__all__ = ["Derivative", "derive"]
