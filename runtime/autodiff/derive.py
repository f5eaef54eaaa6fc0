"""From a Program to its forward and backward halves.

forward:  inputs, parameters           -> results, activity flags, residuals
backward: residuals, result gradients  -> gradients of inputs and parameters
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from runtime import torch_internals
from runtime.autodiff.backward import Backward, Grads, rebuild_views
from runtime.autodiff.forward import Forward, any_of
from runtime.autodiff.tape import Grad
from runtime.ir import Block, Input, Operand, Operator, Program, TensorType, Variable
from runtime.ir.tree import Leaf
from runtime.ir.walk import map_operand
from runtime.ops.registry import definition
from runtime.tracer import state
from runtime.tracer.boundary import trace_lock
from runtime.tracer.recorder import Recorder
from runtime.tracer.session import Replaying, Scope, Session
from runtime.tracer.storage_table import TensorInfo


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


def derive(
    program: Program, arguments: Sequence[torch.Tensor], needs: Sequence[bool], skip: Sequence[int] = ()
) -> Derivative:
    """Differentiate a Program.

    Args:
        program: Any Program; it is not changed.
        arguments: Tensors with the metadata of its inputs and parameters, in order.
        needs: For each argument, whether its gradient is wanted.
        skip: Results through which no gradient flows (rebuilt elsewhere).

    Raises:
        NotDifferentiable: An Operator's gradient cannot be written as a Program (yet).
    """
    session = Session(f"{program.name}.forward")
    session.replaying = Replaying()
    recorder = Recorder(session)
    forward = Forward(session, recorder)
    with trace_lock:
        before = state.enter(session)
        try:
            return _derive(program, arguments, needs, frozenset(skip), session, recorder, forward)
        finally:
            state.enter(before)


def _derive(
    program: Program,
    arguments: Sequence[torch.Tensor],
    needs: Sequence[bool],
    skip: frozenset[int],
    session: Session,
    recorder: Recorder,
    forward: Forward,
) -> Derivative:
    root = session.scope
    args: list[Variable] = []
    for old, real, need in zip(program.block.args, arguments, needs):
        args.append(_argument(session, forward, old, real))
        forward.activity[old] = bool(need)
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch_internals.quiet_shapes(),
        torch_internals.without_autocast_cache(),
    ):
        with recorder:
            tape = forward.block(program.block)
            yields: list[Operand] = [
                session.operand(forward.plain(o)) if isinstance(o, Variable) else o for o in program.block.yields
            ]
            differentiable = [
                index
                for index, o in enumerate(program.block.yields)
                if index not in skip
                and isinstance(o, Variable)
                and forward.is_active(o)
                and isinstance(forward.env[o], torch.Tensor)
            ]
            flags: dict[int, int] = {}
            count = len(yields)
            for index in differentiable:
                active = forward.activity[program.block.yields[index]]
                if not isinstance(active, bool):
                    flags[index] = len(yields)
                    yields.append(any_of(session, active))
            with session.open("backward") as scope:
                scope.twin = root
                grads: Grads = {}
                grad_args: list[Variable] = []
                backward = Backward(session, forward)
                for index in differentiable:
                    old = program.block.yields[index]
                    fake = session.clone_meta(forward.env[old], shape=forward.env[old].shape)
                    arg = session.new_variable(TensorType(fake.dtype, session.dims(fake)))
                    grad_args.append(arg)
                    backward.add(grads, old, Grad(session.fresh(fake, arg), len(differentiable) > 1))
                backward.block(tape, grads)
                wanted = [index for index, need in enumerate(needs) if need]
                for index in wanted:
                    grad = grads.get(program.block.args[index])
                    scope.block.yields.append(None if grad is None else session.read(grad.tensor))
    block = root.block
    block.args = args
    _move_clones(block)
    _move_clones(scope.block)
    for half in (scope.block, block):
        half_yields = list(half.yields)
        if half is block:
            half_yields += yields
        remove_dead(half, half_yields)
    residuals = rebuild_views(block, scope.block, [var for var in scope.block.captures() if var in root.names])
    block.yields = [*yields, *residuals]
    remove_dead(block, block.yields)
    first = Program(
        f"{program.name}.forward", block, [Input(arg, arg.name) for arg in args], assumes=list(program.assumes)
    )
    scope.block.args = [*residuals, *grad_args]
    second = Program(f"{program.name}.backward", scope.block, [Input(arg, arg.name) for arg in scope.block.args])
    for program_half in (first, second):
        program_half.output = tuple(Leaf(index) for index in range(len(program_half.block.yields)))
    return Derivative(first, second, count, flags, differentiable, wanted)


def _argument(session: Session, forward: Forward, old: Variable, real: torch.Tensor) -> Variable:
    """A Variable and its stand-in for an argument of the Program."""
    assert isinstance(old.type, TensorType)
    dynamic = {}
    shape = old.type.shape or ()
    for dim, size in enumerate(shape):
        if isinstance(size, str):
            dynamic[dim] = (
                forward.sizes[size]
                if size in forward.sizes
                else session.sizes.new_input_symbol(old.name, dim, real.shape[dim])
            )
    fake = torch_internals.fake_like(session.fake_mode, real, dynamic)
    var = session.new_variable(TensorType(fake.dtype, session.dims(fake)), old.hint or old.name, session.scope)
    for dim, symbol in dynamic.items():
        session.sizes.bind_size(fake.shape[dim], var, dim)
        forward.sizes.setdefault(shape[dim], symbol)  # type: ignore[arg-type]
    info = TensorInfo(session.storages.new(var, origin=var, label=old.hint))
    info.cached, info.cached_for = var, var
    forward.env[old] = session.register(fake, info)
    return var


def _move_clones(block: Block) -> None:
    """``c = clone(b); n = update(c)`` is ``n = update(b)``: an update copies, unless ``b`` is dead."""
    for op in block.walk():
        for inner in op.blocks:
            _move_clones_here(inner)
    _move_clones_here(block)


def _move_clones_here(block: Block) -> None:
    clones = {op.outputs[0]: op for op in block.ops if op.name == "aten.clone.default" and not op.kwargs}
    if not clones:
        return
    uses: dict[Variable, int] = dict.fromkeys(clones, 0)

    def count(operand: Operand) -> Operand:
        map_operand(operand, lambda var: uses.__setitem__(var, uses[var] + 1) if var in uses else None)
        return operand

    inner_ops = [inner for op in block.ops for inner_block in op.blocks for inner in inner_block.walk()]
    for op in [*block.ops, *inner_ops]:
        count(list(op.args))
        count(dict(op.kwargs))
        for inner in op.blocks:
            count(list(inner.yields))
    count(list(block.yields))
    moved = set()
    for op in block.ops:
        if op.name == "update":
            for arg in op.args:
                if isinstance(arg, Variable) and arg in clones and uses[arg] == 1:
                    moved.add(arg)
    for op in block.ops:
        if op.name == "update":
            op.args = tuple(
                clones[arg].args[0] if isinstance(arg, Variable) and arg in moved else arg for arg in op.args
            )
    block.ops[:] = [op for op in block.ops if not (len(op.outputs) == 1 and op.outputs[0] in moved)]


_EFFECTS = ("assert", "print", "raise", "py_func")


def remove_dead(block: Block, results: Sequence[Operand]) -> None:
    """Drop Operators without effect whose results nothing reads."""
    live: set[Variable] = set()

    def use(operand: Operand) -> None:
        map_operand(operand, lambda var: live.add(var))

    use(list(results))
    kept: list[Operator] = []
    for op in reversed(block.ops):
        effect = (
            op.name in _EFFECTS
            or definition(op.name).effect
            or any(_has_effect(inner) for inner in op.blocks)
            or definition(op.name).random
        )
        if not effect and not any(out in live for out in op.outputs):
            continue
        for inner in op.blocks:
            if op.name != "update":  # whose Operators are there for what they write
                remove_dead(inner, inner.yields)
            for var in inner.captures():
                live.add(var)
        use(list(op.args))
        use(dict(op.kwargs))
        kept.append(op)
    block.ops[:] = reversed(kept)


def _has_effect(block: Block) -> bool:
    return any(op.name in _EFFECTS or definition(op.name).effect or definition(op.name).random for op in block.walk())


__all__ = ["Derivative", "Scope", "derive", "remove_dead"]
