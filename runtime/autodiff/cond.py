"""``cond`` and ``switch``: every path into its own Block; the gradient is another ``cond`` on the same flag.

    y = cond(p) { yield f(x) } { yield g(x) }     ->     gx = cond(p) { yield f'(gy) } { yield g'(gy) }
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff.activity import as_operand, is_always, is_never
from runtime.autodiff.array import FLAGS, list_flags
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, types_of
from runtime.autodiff.residuals import inner_variables, rebuild, substitute
from runtime.autodiff.tape import Activity, BranchEntry, Grad, Grads, ListGrad, Tape
from runtime.autodiff.versions import Inside
from runtime.ir import UNDEF, ArrayType, Block, Operand, Operator, ScalarType, Variable
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition, when
from runtime.tracer.recording.session import Scope, Session


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """Record the paths; residuals are added to their yields when backward knows them."""
    session = forward.session
    paths: list[tuple[Scope, Tape]] = []
    rows: list[list[Operand]] = []
    likes: list[list[Any]] = []
    reached: list[list[Activity | None]] = []
    ends: list[list[Any]] = []
    insides: list[Inside] = []
    unnoticed = forward.versions.unnoticed()
    for block in op.blocks:
        with session.open(op.name) as scope, forward.versions.inside() as inside:
            inner = forward.block(block)
            rows.append([forward.lower(operand) for operand in block.yields])
            likes.append([forward.stable(forward.plain(o)) if isinstance(o, Variable) else o for o in block.yields])
            reached.append([_activity(forward, o) for o in block.yields])
            scope.block.yields.extend(rows[-1])
            ends.append([forward.plain(operand) for operand in block.yields])
        insides.append(inside)
        paths.append((scope, inner))
    recorded = session.emit_operator(
        op.name,
        [forward.lower(op.args[0])],
        None,
        types_of(op.outputs),
        hints=[out.hint for out in op.outputs],
        blocks=[scope.block for scope, _ in paths],
        attrs={key: value for key, value in op.attrs.items() if key == "backward"},
        location=op.location,
    )
    outer, written_by_now = session.scope, forward.versions.unnoticed()

    def taken(parts: Sequence[PathCondition]) -> PathCondition:
        if all(part.always for part in parts):
            return ALWAYS
        return when(_path_flag(forward, outer, recorded, paths, parts, []))

    for position, (old, new) in enumerate(zip(op.outputs, recorded.outputs)):
        forward.env[old] = forward.lift(new, old, [row[position] for row in likes])
        forward.versions.joined(forward.env[old], [row[position] for row in ends], unnoticed, taken)
        per_path = [row[position] for row in reached]
        if not forward.can_carry(old) or all(part is None or is_never(part) for part in per_path):
            continue
        if all(part is None or is_always(part) for part in per_path):
            forward.activity[old] = ALWAYS
            continue
        flag = _path_flag(forward, outer, recorded, paths, per_path, [row[position] for row in rows])
        forward.activity[old] = flag if isinstance(flag.type, ArrayType) else when(flag)
    forward.versions.require_told(unnoticed, written_by_now, insides)
    written = {
        memory: taken([inside.written.get(memory, NEVER) for inside in insides])
        for memory in dict.fromkeys(memory for inside in insides for memory in inside.written)
    }
    forward.versions.after(insides, written)
    tape.entries.append(BranchEntry(op, recorded, session.scope, paths))


def _activity(forward: Forward, operand: Operand) -> Activity | None:
    """When a path's result needs a gradient; None for a list without items."""
    return None if forward.is_empty(operand) else forward.activity_of(operand)


def _path_flag(
    forward: Forward,
    outer: Scope,
    recorded: Operator,
    paths: list[tuple[Scope, Tape]],
    parts: Sequence[Activity | None],
    values: Sequence[Operand],
) -> Variable:
    """A new result of the branch: whether what the path taken gives needs a gradient; for a list, each item."""
    session = forward.session
    array = any(isinstance(value, Variable) and isinstance(value.type, ArrayType) for value in values)
    for (scope, _), part, value in itertools.zip_longest(paths, parts, values):
        with session.reopen(scope):
            needed = NEVER if part is None else part
            flag = list_flags(session, needed, value) if array else as_operand(session, needed)
        scope.block.yields.append(flag)
    out = session.new_variable(FLAGS if array else ScalarType("bool"), "", outer)
    recorded.outputs = (*recorded.outputs, out)
    return out


def backward(backward: Backward, entry: BranchEntry, grads: Grads) -> None:
    """The same paths, backward. A gradient that only one path has is None on the other, as in eager."""
    session, forward = backward.session, backward.forward
    given = {position: grads.pop(out) for position, out in enumerate(entry.op.outputs) if out in grads}
    if not given:
        return
    session.replaying.location = entry.op.location  # type: ignore[union-attr]
    lists = _lists_passed_through(forward, entry, grads)
    rows: list[Grads] = []
    scopes: list[Scope] = []
    for (forward_scope, tape), block in zip(entry.paths, entry.op.blocks):
        with session.open(entry.op.name) as scope:
            scope.forward = forward_scope
            mine: Grads = {var: ListGrad(grad.var) for var, grad in lists.items()}
            for position, grad in given.items():
                operand = block.yields[position]
                if isinstance(operand, Variable) and forward.is_active(operand):
                    backward.add(mine, operand, _in_shape(backward, grad, forward.env[operand]))
            backward.block(tape, mine)
            for var in list(mine):
                backward.read(mine[var])
        rows.append(mine)
        scopes.append(scope)
    inside = set().union(*(inner_variables(block) for block in entry.op.blocks))
    reached = [
        var
        for var in {var: None for row in rows for var in row}
        if var not in inside and not (var in lists and all(row[var].var is lists[var].var for row in rows))
    ]
    for row, scope in zip(rows, scopes):
        with session.reopen(scope):
            scope.block.yields.extend(backward.contiguous(row[var]) if var in row else None for var in reached)
    outputs = session.emit(
        entry.op.name,
        [entry.recorded.args[0]],
        None,
        [backward.type_like(var) for var in reached],
        blocks=[scope.block for scope in scopes],
        attrs={"backward": True},
    )
    for (forward_scope, _), scope in zip(entry.paths, scopes):
        _keep_residuals(backward, session, entry, forward_scope, scope.block)
    for var, out in zip(reached, outputs):
        if var in lists:
            grads[var] = ListGrad(out)
            continue
        maybe = any(var not in row or (isinstance(row[var], Grad) and row[var].maybe) for row in rows)
        backward.add(grads, var, backward.grad_of(var, out, maybe))


def _lists_passed_through(forward: Forward, entry: BranchEntry, grads: Grads) -> dict[Variable, ListGrad]:
    """Lists from outside that have a gradient already: each path adds to it, rather than making one of its own."""
    read = {var for block in entry.op.blocks for var in block.captures() if isinstance(var.type, ArrayType)}
    return {var: grads[var] for var in read if isinstance(grads.get(var), ListGrad)}


def _in_shape(backward: Backward, grad: Grad | ListGrad, value: Any) -> Grad | ListGrad:
    """The gradient of a joined value as one path sees it: the sizes are those of the path's own value."""
    session = backward.session
    if isinstance(grad, ListGrad):
        return grad
    if not isinstance(value, torch.Tensor) or all(
        torch_internals.size_expr(a) == torch_internals.size_expr(b) for a, b in zip(grad.tensor.shape, value.shape)
    ):
        return grad
    fake = session.clone_meta(grad.tensor, shape=value.shape)
    info = replace(session.info(grad.tensor))
    return Grad(session.register(fake, info), grad.maybe)


def _keep_residuals(
    backward: Backward, session: Session, entry: BranchEntry, forward_scope: Scope, block: Block
) -> None:
    """What a path's backward reads of its forward becomes a result of the branch; other paths have none."""
    wanted = [var for var in block.captures() if var in forward_scope.names]
    mapping: dict[Variable, Variable] = {}
    for var in rebuild(forward_scope.block, block, wanted, backward.rebuilds(), session.new_name):
        out = session.new_variable(var.type, var.hint, entry.scope)
        entry.recorded.outputs = (*entry.recorded.outputs, out)
        for scope, _ in entry.paths:
            scope.block.yields.append(var if scope is forward_scope else UNDEF)
        mapping[var] = out
    substitute(block, mapping)
