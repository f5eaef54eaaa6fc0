"""``scan``: the gradient is a ``scan`` over the same numbers in reverse.

    h, hs = scan(n, h0, x) { ... f(h, row, W) }   ->   h, hs, kept = scan(n, h0, x) { ...; yield ..., residuals }
                                                       gh, gW, gx = scan(n, gh, None, ghs, kept) { ... } reverse

The gradient of a tensor from outside (W) is an accumulator that is carried; that of what slices are taken of is put
together of the slices' gradients. Where more is to be said (something is written, or whether a value needs a gradient
depends on the path) the scan is differentiated as the ``while_loop`` that it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from runtime.autodiff.activity import is_always, is_known, is_never, join_activity
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, types_of
from runtime.autodiff.residuals import inner_variables, rebuild, substitute
from runtime.autodiff.tape import Activity, Entry, Grad, Grads, ListGrad, Tape
from runtime.autodiff.while_loop import accumulate, arriving
from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable, inference
from runtime.ops import scan
from runtime.tracer.memory.conditions import ALWAYS, known, when
from runtime.tracer.numbers import scalars
from runtime.tracer.recording.session import Scope


@dataclass(eq=False)
class ScanEntry(Entry):
    """A ``scan``: ``active`` are the positions of carried values that need a gradient."""

    op: Operator
    recorded: Operator
    scope: Scope
    body_scope: Scope
    tape: Tape
    active: list[int]
    carried: list[Any]
    """The stand-ins of the carried values inside the body."""


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """The body once; residuals are added to its items later."""
    if not _recorded(forward, op, tape):
        tape.entries += forward.block(Block([], scan.expanded(op))).entries


def _recorded(forward: Forward, op: Operator, tape: Tape) -> bool:
    """Record the scan as one; False if it has to be taken for the ``while_loop`` that it is."""
    session = forward.session
    assert session.replaying is not None
    if forward.versions.counting or session.replaying.lowering or not _plain_values(forward, op):
        return False
    count = scan.carried(op)
    (body,) = op.blocks
    firsts = op.args[1 : 1 + count]
    inits = [forward.plain(value) for value in firsts]
    before = [forward.activity_of(value) for value in firsts]
    if any(not is_known(forward.activity_of(value)) for value in op.args if isinstance(value, Variable)):
        return False
    operands = [forward.lower(arg) for arg in op.args]
    active = {place for place in range(count) if is_always(before[place]) and forward.can_carry(firsts[place])}
    while True:
        with session.open("scan") as scope, forward.versions.inside():
            stand_ins = _enter(forward, op, inits, active, before)
            forward.loop_args.update(body.args)
            inner = forward.block(body)
            forward.loop_args.difference_update(body.args)
            after = [forward.activity_of(value) for value in body.yields]
            reached = {
                place
                for place, arg in enumerate(body.args[1 : 1 + count])
                if not is_never(after[place]) and forward.can_carry(arg)
            }
            if not reached <= active:
                active |= reached
                continue
            if not all(is_always(after[place]) for place in active) or not all(map(is_known, after)):
                return False
            rows = [forward.lower(value) for value in body.yields]
            ends = [forward.plain(value) for value in body.yields]
            scope.block.yields.extend(rows)
        break
    for guess, end in zip(stand_ins, ends):
        if isinstance(guess, torch.Tensor) and isinstance(end, torch.Tensor) and guess.device != end.device:
            return False
    recorded = session.emit_operator(
        "scan",
        operands,
        None,
        types_of(op.outputs),
        hints=[out.hint for out in op.outputs],
        blocks=[scope.block],
        attrs={"carried": count},
        location=op.location,
    )
    for place, (old, new) in enumerate(zip(op.outputs, recorded.outputs)):
        end = ends[place]
        if place < count:
            forward.env[old] = forward.lift(new, old, [inits[place], end])
        elif isinstance(old.type, TensorType):
            forward.env[old] = forward.lift_tensor(new, old, end.device)
        else:
            forward.env[old] = new
            if isinstance(end, torch.Tensor):
                forward.items[new] = end
    _note_activity(forward, op, operands[0], active, before, after)
    tape.entries.append(ScanEntry(op, recorded, session.scope, scope, inner, sorted(active), stand_ins))
    return True


def _plain_values(forward: Forward, op: Operator) -> bool:
    """Whether all that goes through is numbers and tensors whose types are known, and no list has a gradient."""
    (body,) = op.blocks
    if op.attrs.get("reverse") or any(isinstance(out.type, ArrayType) for out in op.outputs[: scan.carried(op)]):
        return False
    if any(isinstance(var.type, ArrayType) and forward.is_active(var) for var in body.captures()):
        return False
    if any(isinstance(out.type, ArrayType) and isinstance(out.type.element, ArrayType) for out in op.outputs):
        return False
    types: list[Type] = [*types_of(body.args), *(out.type for out in op.outputs if not isinstance(out.type, ArrayType))]
    return all(isinstance(inference.type_of(column), TensorType) for column in scan.columns(op)) and all(
        isinstance(one, ScalarType) or (isinstance(one, TensorType) and None not in (one.dtype, one.shape))
        for one in types
    )


def _enter(
    forward: Forward, op: Operator, inits: list[Any], active: set[int], before: list[Activity]
) -> list[Any]:
    """Block arguments and stand-ins for the number, the carried values and the slices; those of the carried ones."""
    session = forward.session
    (body,) = op.blocks
    count = scan.carried(op)
    made = [session.new_variable(arg.type, arg.hint) for arg in body.args]
    session.scope.block.args.extend(made)
    index = forward.env[body.args[0]] = scalars.wrap(made[0])
    session.sizes.natural.add(index.var)
    flag: Variable | None = None
    for place, (arg, new) in enumerate(zip(body.args[1 : 1 + count], made[1:])):
        exists = isinstance(inits[place], torch.Tensor) or not isinstance(arg.type, TensorType)
        forward.env[arg] = forward.lift(new, arg, [inits[place]]) if exists else forward.lift_tensor(new, arg, None)
        forward.activity[arg] = known(place in active)
        if place in active and not is_always(before[place]):  # from the second iteration on
            if flag is None:
                (flag,) = session.emit("scalar.gt", [made[0], 0])
            forward.activity[arg] = when(flag)
    for column, arg, new in zip(scan.columns(op), body.args[1 + count :], made[1 + count :]):
        whole = forward.plain(column)
        forward.env[arg] = session.fresh(session.clone_meta(whole, shape=whole.shape[1:]), new)
        forward.activity[arg] = forward.activity_of(column)
    return [forward.env[arg] for arg in body.args[1 : 1 + count]]


def _note_activity(
    forward: Forward, op: Operator, length: Operand, active: set[int], before: list[Activity], after: list[Activity]
) -> None:
    """A carried value needs a gradient always, or if there was an iteration; what items make, if these do."""
    again: Variable | None = None
    for place, out in enumerate(op.outputs):
        if place >= scan.carried(op):
            forward.activity[out] = known(not is_never(after[place]) and forward.can_carry(out))
        elif place in active and is_always(before[place]):
            forward.activity[out] = ALWAYS
        elif place in active:
            if again is None:
                (again,) = forward.session.emit("scalar.gt", [length, 0])
            forward.activity[out] = join_activity([before[place], when(again)])


def backward(backward: Backward, entry: ScanEntry, grads: Grads) -> None:
    """The scan over the same numbers, last to first. A gradient that is not there stays None all the way."""
    given = {place: grads.pop(out) for place, out in enumerate(entry.op.outputs) if out in grads}
    if not given:
        return
    maybe = {p for p in entry.active if p not in given or (isinstance(given[p], Grad) and given[p].maybe)}
    while True:
        backward.session.replaying.location = entry.op.location  # type: ignore[union-attr]
        body = _Body(backward, entry, maybe, given)
        if body.maybe <= maybe:
            break
        maybe |= body.maybe
    _emit(backward, entry, body, given, grads)


class _Body:
    """One recording of the backward body, under a guess of which carried gradients can be None."""

    def __init__(self, backward: Backward, entry: ScanEntry, maybe: set[int], given: dict[int, Any]) -> None:
        session, op = backward.session, entry.op
        (body,) = op.blocks
        count = scan.carried(op)
        inside = inner_variables(body)
        with session.open("scan") as scope:
            scope.forward = entry.body_scope
            self.scope = scope
            self.index = session.new_variable(ScalarType("int"))
            self.columns: list[tuple[Variable, Variable]] = []
            """Outer Variables, and the Block arguments that are their slices."""
            mine: Grads = {}
            left = entry.op.blocks[0].yields
            self.args = [arriving(backward, left[place], entry.carried[place], mine, place in maybe)
                         for place in entry.active]  # fmt: skip
            for place, grad in given.items():
                if place >= count:
                    self._item(backward, body.yields[place], grad, mine)
            backward.block(entry.tape, mine)
            self.nexts: list[Operand] = []
            self.maybe: set[int] = set()
            for place in entry.active:
                grad = mine.pop(body.args[1 + place], None)
                self.nexts.append(None if grad is None else backward.contiguous(grad))
                if grad is None or grad.maybe:
                    self.maybe.add(place)
            self.slices: list[tuple[Variable, Variable]] = []
            """What slices are taken of, and the gradient of an iteration's."""
            for column, arg in zip(scan.columns(op), body.args[1 + count :]):
                if arg in mine:
                    assert isinstance(column, Variable)
                    self.slices.append((column, backward.contiguous(mine.pop(arg))))
            self.outer = {var: grad for var, grad in mine.items() if var not in inside}
            self.acc_args = [session.new_variable(backward.type_like(var)) for var in self.outer]
            self.acc_next: list[Operand] = []
            for arg, grad in zip(self.acc_args, self.outer.values()):
                self.acc_next += accumulate(session, arg, session.read(grad.tensor), arg.type)

    def _item(self, backward: Backward, value: Operand, grad: Grad | ListGrad, mine: Grads) -> None:
        """The gradient of an iteration's item: a row of the tensor's, or what the list has for it."""
        session, forward = backward.session, backward.forward
        if not isinstance(value, Variable) or not forward.is_active(value):
            return
        like = forward.env[value]
        type_ = session.type_of(like)
        whole = backward.read(grad)
        if isinstance(grad, Grad) and not grad.maybe:
            arg = session.new_variable(type_)
            self.columns.append((whole, arg))
            backward.add(mine, value, Grad(backward.like(like, arg)))
            return
        (found,) = session.emit("grad.list_get", [whole, self.index], types=[type_])
        backward.add(mine, value, Grad(backward.like(like, found), True))


def _emit(backward: Backward, entry: ScanEntry, body: _Body, given: dict[int, Any], grads: Grads) -> None:
    session, forward, op = backward.session, backward.forward, entry.op
    starts = [backward.contiguous(given[place]) if place in given else None for place in entry.active]
    columns = [*body.columns, *_residuals(backward, entry, body)]
    block = body.scope.block
    passed = [*body.args, *body.acc_args]
    block.args = [body.index, *passed, *(arg for _, arg in columns)]
    block.yields = [*body.nexts, *body.acc_next, *(grad for _, grad in body.slices)]
    outputs = session.emit(
        "scan",
        [entry.recorded.args[0], *starts, *(None for _ in body.acc_args), *(whole for whole, _ in columns)],
        None,
        [*(arg.type for arg in passed), *(ArrayType(grad.type) for _, grad in body.slices)],
        blocks=[block],
        attrs={"carried": len(passed), "reverse": True, "backward": True},
    )
    for place, out in zip(entry.active, outputs):
        first = op.args[1 + place]
        if isinstance(first, Variable) and forward.is_active(first):
            maybe = place not in given or place in body.maybe or getattr(given[place], "maybe", True)
            backward.add(grads, first, backward.grad_of(first, out, maybe))
    for var, out in zip(body.outer, outputs[len(body.args) :]):
        backward.add(grads, var, backward.grad_of(var, out, True))
    for (column, _), out in zip(body.slices, outputs[len(passed) :]):
        whole = forward.env[column]
        shape = [session.operand(size) for size in whole.shape]
        found = backward.emit_grad("grad.rows", [out, shape, whole.dtype, whole.device], whole)
        backward.add(grads, column, Grad(found, True))


def _residuals(backward: Backward, entry: ScanEntry, body: _Body) -> list[tuple[Variable, Variable]]:
    """What the backward body reads of its forward: slices are taken again, all else is one more item of each."""
    session, op, recorded = backward.session, entry.op, entry.recorded
    forward_block, block = entry.body_scope.block, body.scope.block
    wanted = [var for var in block.captures() if var in entry.body_scope.names]
    again = dict(zip(forward_block.args[1 + scan.carried(op) :], scan.columns(recorded)))
    found: list[tuple[Variable, Variable]] = []
    mapping: dict[Variable, Variable] = {}
    rebuilds = backward.rebuilds(bool(op.attrs.get("recompute")))
    for var in rebuild(forward_block, block, wanted, rebuilds, session.new_name):
        if var is forward_block.args[0]:
            mapping[var] = body.index
            continue
        arg = mapping[var] = session.new_variable(var.type, var.hint, body.scope)
        column = again.get(var)
        if not isinstance(column, Variable):
            column = session.new_variable(ArrayType(var.type), "", entry.scope)
            forward_block.yields.append(var)
            recorded.outputs = (*recorded.outputs, column)
        found.append((column, arg))
    substitute(block, mapping)
    return found
