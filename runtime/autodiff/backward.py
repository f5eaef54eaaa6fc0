"""The backward half: the tape walked in reverse, recording gradients into backward Blocks.

A backward Block reads forward Variables directly while it is recorded. Those that belong to a forward Block which is
closed by then become *residuals*: extra results of a branch, stacks of a loop, results of the whole forward Program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff.forward import Forward, NotDifferentiable, can_carry
from runtime.autodiff.tape import BranchEntry, CustomEntry, Entry, Grad, LoopEntry, Segment, Tape
from runtime.ir import UNDEF, ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.ir.walk import map_operand
from runtime.ops import aten
from runtime.tracer.session import Scope, Session

Grads = dict[Variable, Grad]
"""Gradients by the Variable of the Program that is differentiated."""


class Backward:
    """Records the gradients of what a ``Forward`` recorded."""

    def __init__(self, session: Session, forward: Forward) -> None:
        self.session = session
        self.forward = forward

    def block(self, tape: Tape, grads: Grads) -> None:
        """Walk a tape in reverse: uses up gradients of what the Block computed, adds those of what it read."""
        for entry in reversed(tape.entries):
            RULES[type(entry)](self, entry, grads)

    def add(self, grads: Grads, var: Variable, grad: Grad) -> None:
        """Add a gradient to what ``var`` has so far."""
        before = grads.get(var)
        if before is None:
            grads[var] = grad
        elif before.maybe or grad.maybe:
            out = self.emit_grad(
                "grad.sum", [self.session.read(before.tensor), self.session.read(grad.tensor)], before.tensor
            )
            grads[var] = Grad(out, before.maybe and grad.maybe)
        else:
            grads[var] = Grad(before.tensor + grad.tensor)

    def emit_grad(self, name: str, args: list[Operand], like: torch.Tensor) -> torch.Tensor:
        """An Operator of ``runtime.ops.grad`` whose result has the metadata of ``like``."""
        session = self.session
        fake = session.clone_meta(like, shape=like.shape)
        (var,) = session.emit(name, args, None, [TensorType(fake.dtype, session.dims(fake))])
        return session.fresh(fake, var)

    def definite(self, grad: Grad) -> torch.Tensor:
        """The gradient, zeros where there is none."""
        if not grad.maybe:
            return grad.tensor
        shape = [self.session.operand(size) for size in grad.tensor.shape]
        return self.emit_grad(
            "grad.zeros_if_none",
            [self.session.read(grad.tensor), shape, grad.tensor.dtype, grad.tensor.device],
            grad.tensor,
        )

    def zeros(self, like: torch.Tensor) -> torch.Tensor:
        """Zeros of a value's shape."""
        return torch.zeros(tuple(like.shape), dtype=like.dtype, device=like.device)

    def none_test(self, grads: list[Grad]) -> Variable:
        """A flag that is true when all of some gradients are None."""
        session = self.session
        result: Variable | None = None
        for grad in grads:
            (flag,) = session.emit("scalar.is_none", [session.read(grad.tensor)], types=[ScalarType("bool")])
            if result is None:
                result = flag
            else:
                (result,) = session.emit("scalar.and_", [result, flag], types=[ScalarType("bool")])
        assert result is not None
        return result


def _segment(backward: Backward, entry: Segment, grads: Grads) -> None:
    """Ask torch's autograd for the segment's gradients, on fake tensors: its derivative formulas are recorded."""
    results = [(var, fake, grads.pop(var)) for var, fake in entry.results.items() if var in grads]
    if not results or not entry.leaves:
        return
    backward.session.replaying.location = entry.location  # type: ignore[union-attr]

    def record() -> list[torch.Tensor | None]:
        given = [_fitting(backward.definite(grad), fake) for _, fake, grad in results]
        return list(
            torch.autograd.grad([fake for _, fake, _ in results], list(entry.leaves.values()), given, allow_unused=True)
        )

    maybe = all(grad.maybe for _, _, grad in results)
    found = _unless_none(backward, [grad for _, _, grad in results], record) if maybe else record()
    for var, tensor in zip(entry.leaves, found):
        if tensor is not None:
            backward.add(grads, var, Grad(tensor, maybe))


def _fitting(grad: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    return grad if grad.dtype == fake.dtype else grad.to(fake.dtype)


def _unless_none(
    backward: Backward, given: list[Grad], record: Callable[[], list[torch.Tensor | None]]
) -> list[torch.Tensor | None]:
    """Record under a condition: nothing flows back where no gradient arrived, as in eager."""
    session = backward.session
    flag = backward.none_test(given)
    with session.open("cond") as nothing:
        pass
    with session.open("cond") as scope:
        found = record()
        scope.block.yields.extend(session.read(tensor) for tensor in found if tensor is not None)
    nothing.block.yields.extend([UNDEF] * len(scope.block.yields))
    present = [tensor for tensor in found if tensor is not None]
    fakes = [session.clone_meta(tensor, shape=tensor.shape) for tensor in present]
    types: list[Type] = [TensorType(fake.dtype, session.dims(fake)) for fake in fakes]
    outputs = session.emit("cond", [flag], None, types, blocks=[nothing.block, scope.block])
    lifted = iter([session.fresh(fake, var) for fake, var in zip(fakes, outputs)])
    return [None if tensor is None else next(lifted) for tensor in found]


def _branch(backward: Backward, entry: BranchEntry, grads: Grads) -> None:
    """The gradient of a ``cond`` is another ``cond`` on the same flag."""
    session, forward = backward.session, backward.forward
    given = {position: grads.pop(out) for position, out in enumerate(entry.op.outputs) if out in grads}
    if not given:
        return
    session.replaying.location = entry.op.location  # type: ignore[union-attr]
    rows: list[Grads] = []
    scopes: list[Scope] = []
    for (forward_scope, tape), block in zip(entry.paths, entry.op.blocks):
        with session.open(entry.op.name) as scope:
            scope.twin = forward_scope
            mine: Grads = {}
            for position, grad in given.items():
                operand = block.yields[position]
                if isinstance(operand, Variable) and forward.is_active(operand):
                    backward.add(mine, operand, _in_shape(backward, grad, forward.env[operand]))
            backward.block(tape, mine)
            for var in list(mine):
                session.read(mine[var].tensor)
        rows.append(mine)
        scopes.append(scope)
    reached = list({var: None for row in rows for var in row if _outer(forward, entry, var)})
    types: list[Type] = []
    fakes = []
    for var in reached:
        fake = session.clone_meta(forward.env[var], shape=forward.env[var].shape)
        fakes.append(fake)
        types.append(TensorType(fake.dtype, session.dims(fake)))
    for row, scope in zip(rows, scopes):
        with session.reopen(scope):
            scope.block.yields.extend(_yield(backward, row[var]) if var in row else UNDEF for var in reached)
    pred = entry.recorded.args[0]
    outputs = session.emit(entry.op.name, [pred], None, types, blocks=[scope.block for scope in scopes], attrs={})
    for (forward_scope, _), scope in zip(entry.paths, scopes):
        _residuals_of_branch(session, entry, forward_scope, scope.block)
    for var, fake, out in zip(reached, fakes, outputs):
        maybe = any(var not in row or row[var].maybe for row in rows)
        backward.add(grads, var, Grad(session.fresh(fake, out), maybe))


def _in_shape(backward: Backward, grad: Grad, value: Any) -> Grad:
    """The gradient of a joined value as one path sees it: the sizes are those of the path's own value."""
    session = backward.session
    if not isinstance(value, torch.Tensor) or all(
        torch_internals.size_expr(a) == torch_internals.size_expr(b) for a, b in zip(grad.tensor.shape, value.shape)
    ):
        return grad
    fake = session.clone_meta(grad.tensor, shape=value.shape)
    info = replace(session.info(grad.tensor))
    return Grad(session.register(fake, info), grad.maybe)


def _outer(forward: Forward, entry: BranchEntry, var: Variable) -> bool:
    return all(var not in inner_variables(block) for block in entry.op.blocks)


def inner_variables(block: Block) -> set[Variable]:
    """Everything assigned in a Block or inside it."""
    found = set(block.args)
    for op in block.walk():
        found.update(op.outputs)
        for inner in op.blocks:
            found.update(inner.args)
    return found


def _yield(backward: Backward, grad: Grad) -> Operand:
    tensor = grad.tensor
    if not grad.maybe and not torch_internals.contiguity(tensor)[0]:
        tensor = tensor.contiguous()
    return backward.session.read(tensor)


def substitute(block: Block, mapping: dict[Variable, Variable]) -> None:
    """Replace Variables read in a Block, at any depth."""
    if not mapping:
        return

    def change(var: Variable) -> Operand:
        return mapping.get(var, var)

    for op in block.walk():
        op.args = tuple(map_operand(arg, change) for arg in op.args)
        op.kwargs = {key: map_operand(value, change) for key, value in op.kwargs.items()}
        for inner in op.blocks:
            inner.yields = [map_operand(operand, change) for operand in inner.yields]
    block.yields = [map_operand(operand, change) for operand in block.yields]


def rebuild_views(forward_block: Block, block: Block, wanted: list[Variable]) -> list[Variable]:
    """Views among the residuals are computed again from their base at the start of ``block``; returns what is left to
    be kept: bases and everything that is no view."""
    producers = {out: op for op in forward_block.ops for out in op.outputs}
    kept: dict[Variable, None] = {}
    rebuilt: dict[Operator, None] = {}

    def need(var: Variable) -> None:
        op = producers.get(var)
        if op is None or len(op.outputs) != 1 or op.blocks or not _is_view(op):
            kept[var] = None
            return
        for source in op.inputs:
            if source in producers or source in forward_block.args:
                need(source)
        rebuilt[op] = None

    for var in wanted:
        need(var)
    copies: list[Operator] = []
    mapping: dict[Variable, Variable] = {}
    for op in rebuilt:
        out = Variable(op.outputs[0].name + ".view", op.outputs[0].type, op.outputs[0].hint)
        copies.append(
            Operator(
                op.name,
                tuple(map_operand(arg, lambda v: mapping.get(v, v)) for arg in op.args),
                {k: map_operand(v, lambda x: mapping.get(x, x)) for k, v in op.kwargs.items()},
                (out,),
                grad_mode=op.grad_mode,
                autocast=op.autocast,
                location=op.location,
            )
        )
        mapping[op.outputs[0]] = out
    substitute(block, mapping)
    block.ops[:0] = copies
    return list(kept)


def _is_view(op: Operator) -> bool:
    if not op.name.startswith("aten."):
        return False
    return bool(aten.is_view(aten.resolve(op.name)))


def _wanted(block: Block, scope: Scope) -> list[Variable]:
    return [var for var in block.captures() if var in scope.names]


def _residuals_of_branch(session: Session, entry: BranchEntry, forward_scope: Scope, block: Block) -> None:
    """What a path's backward reads of its forward becomes a result of the branch; other paths have none."""
    wanted = rebuild_views(forward_scope.block, block, _wanted(block, forward_scope))
    mapping: dict[Variable, Variable] = {}
    for var in wanted:
        out = session.new_variable(var.type, var.hint, entry.scope)
        entry.recorded.outputs = (*entry.recorded.outputs, out)
        for scope, _ in entry.paths:
            scope.block.yields.append(var if scope is forward_scope else UNDEF)
        mapping[var] = out
    substitute(block, mapping)


def _loop(backward: Backward, entry: LoopEntry, grads: Grads) -> None:
    """The gradient of a ``while_loop`` is a ``while_loop`` that goes back over the same iterations."""
    session, forward, op = backward.session, backward.forward, entry.op
    given = {position: grads.pop(op.outputs[position]) for position in entry.active if op.outputs[position] in grads}
    for out in op.outputs:
        grads.pop(out, None)
    if not given:
        return
    session.replaying.location = op.location  # type: ignore[union-attr]
    body = op.blocks[1]
    starts = []
    for position in entry.active:
        value = forward.env[op.outputs[position]]
        start = backward.definite(given[position]) if position in given else backward.zeros(value)
        starts.append(start if torch_internals.contiguity(start)[0] else start.contiguous())
    start_vars = [session.read(start) for start in starts]
    with session.open("while_loop") as scope:
        scope.twin = entry.body_scope
        count = session.new_variable(ScalarType("int"))
        mine: Grads = {}
        grad_args: list[Variable] = []
        for position, start in zip(entry.active, starts):
            operand = body.yields[position]
            end = forward.env.get(operand) if isinstance(operand, Variable) else None
            like = end if isinstance(end, torch.Tensor) else start
            fake = session.clone_meta(like, shape=like.shape)
            arg = session.new_variable(TensorType(fake.dtype, session.dims(fake)))
            grad_args.append(arg)
            if isinstance(operand, Variable) and forward.is_active(operand):
                backward.add(mine, operand, Grad(session.fresh(fake, arg)))
        backward.block(entry.tape, mine)
        next_grads: list[Operand] = []
        for position, stand_in in zip(entry.active, (entry.carried[p] for p in entry.active)):
            grad = mine.pop(body.args[position], None)
            tensor = backward.zeros(stand_in) if grad is None else backward.definite(grad)
            next_grads.append(session.read(tensor if torch_internals.contiguity(tensor)[0] else tensor.contiguous()))
        inside = inner_variables(body)
        outer = [(var, grad) for var, grad in mine.items() if var not in inside]
        acc_args: list[Variable] = []
        acc_next: list[Operand] = []
        for var, grad in outer:
            like = forward.env[var]
            type_ = TensorType(like.dtype, session.dims(like))
            acc = session.new_variable(type_)
            acc_args.append(acc)
            acc_next += session.emit("grad.accumulate", [acc, session.read(grad.tensor)], None, [type_])
        (left,) = session.emit("scalar.sub", [count, 1], types=[ScalarType("int")])
    block = scope.block
    stack_args, stack_next, stack_starts = _stacks(session, entry, scope)
    block.args = [count, *grad_args, *acc_args, *stack_args]
    block.yields = [left, *next_grads, *acc_next, *stack_next]
    with session.open("while_loop") as test_scope:
        test_scope.block.args = [session.new_variable(arg.type) for arg in block.args]
        (going,) = session.emit("scalar.gt", [test_scope.block.args[0], 0], types=[ScalarType("bool")])
        test_scope.block.yields = [going]
    inits: list[Operand] = [entry.count, *start_vars, *([UNDEF_NONE] * len(acc_args)), *stack_starts]
    outputs = session.emit(
        "while_loop", inits, None, [arg.type for arg in block.args], blocks=[test_scope.block, block]
    )
    results = iter(outputs[1:])
    for position in entry.active:
        out = next(results)
        arg = op.args[position]
        if isinstance(arg, Variable) and forward.is_active(arg):
            like = forward.env[arg]
            backward.add(grads, arg, Grad(session.fresh(session.clone_meta(like, shape=like.shape), out)))
    for var, _ in outer:
        like = forward.env[var]
        backward.add(grads, var, Grad(session.fresh(session.clone_meta(like, shape=like.shape), next(results)), True))


UNDEF_NONE = None
"""An accumulator before the first iteration: no gradient yet."""


def _stacks(session: Session, entry: LoopEntry, scope: Scope) -> tuple[list[Variable], list[Operand], list[Operand]]:
    """What a body's backward reads of its forward is pushed by each iteration and popped by its backward."""
    forward_block = entry.body_scope.block
    wanted = rebuild_views(forward_block, scope.block, _wanted(scope.block, entry.body_scope))
    args: list[Variable] = []
    nexts: list[Operand] = []
    starts: list[Operand] = []
    test_block = entry.recorded.blocks[0]
    mapping: dict[Variable, Variable] = {}
    pops: list[Operator] = []
    for var in wanted:
        type_ = ArrayType(var.type)
        with session.reopen(entry.scope):
            position = entry.scope.block.ops.index(entry.recorded)
            new = session.new_variable(type_)
            entry.scope.block.ops.insert(position, Operator("array.new", ([],), {}, (new,), location=entry.op.location))
        pushed_arg = session.new_variable(type_, "", entry.body_scope)
        forward_block.args.append(pushed_arg)
        test_block.args.append(session.new_variable(type_))
        pushed = session.new_variable(type_, "", entry.body_scope)
        forward_block.ops.append(Operator("array.append", (pushed_arg, var), {}, (pushed,), location=entry.op.location))
        forward_block.yields.append(pushed)
        out = session.new_variable(type_, "", entry.scope)
        entry.recorded.args = (*entry.recorded.args, new)
        entry.recorded.outputs = (*entry.recorded.outputs, out)
        arg = session.new_variable(type_, "", scope)
        rest = session.new_variable(type_, "", scope)
        item = session.new_variable(var.type, var.hint, scope)
        pops.append(Operator("array.pop", (arg, -1), {}, (rest, item), location=entry.op.location))
        mapping[var] = item
        args.append(arg)
        nexts.append(rest)
        starts.append(out)
    substitute(scope.block, mapping)
    scope.block.ops[:0] = pops
    return args, nexts, starts


def _custom(backward: Backward, entry: CustomEntry, grads: Grads) -> None:
    """``custom_grad``: the user's own backward, in line."""
    forward, op = backward.forward, entry.op
    count = op.attrs["n_outputs"]
    given = [grads.pop(out, None) for out in op.outputs]
    if all(grad is None for grad in given):
        return
    if any(grad is not None and grad.maybe for grad in given):
        given = [None if grad is None else Grad(backward.definite(grad)) for grad in given]
    block = op.blocks[1]
    values: list[Any] = [*entry.residuals]
    for result, grad in zip(entry.results[:count], given):
        if grad is not None:
            values.append(grad.tensor)
        elif op.attrs.get("materialize_grads", True) and can_carry(result):
            values.append(backward.zeros(result))
        else:
            values.append(None)
    for arg, value in zip(block.args, values):
        forward.env[arg] = value
        forward.activity[arg] = False
    with torch.no_grad():
        forward.block(block)
    for arg, operand in zip(op.args, block.yields):
        if isinstance(arg, Variable) and forward.is_active(arg) and isinstance(operand, Variable):
            tensor = forward.plain(operand)
            if isinstance(tensor, torch.Tensor):
                backward.add(grads, arg, Grad(tensor))


RULES: dict[type[Any], Callable[[Backward, Any, Grads], None]] = {
    Segment: _segment,
    BranchEntry: _branch,
    LoopEntry: _loop,
    CustomEntry: _custom,
}
"""How each entry of a tape is walked back."""

__all__ = ["Backward", "Entry", "Grads", "NotDifferentiable", "rebuild_views", "substitute"]
