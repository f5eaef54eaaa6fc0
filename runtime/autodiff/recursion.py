"""``recursion``: the gradient is a ``recursion`` over the same calls.

    y = recursion(x) { ... z = recur(f(x, W)) ... }   ->   y, frame = recursion(x) { ...; frame.new(residuals) }
                                                           gx, gW = recursion(frame, gy) { frame.get ...; recur ... }

What a call keeps for its backward is its *frame*, which it gives as one more result. To the call that made it, that is
a residual like others: a branch gives it, a loop collects it, and the caller's frame holds it. So frames are a tree
like the calls, and a call whose result no gradient reaches is left out with its frame, whatever the order. (A stack
that all calls share would have to be kept in step with those that are left out.)

Which arguments and results need a gradient is a fixed point over all calls; where some do in some calls only, a flag
goes along. The gradient of a tensor from outside (W) is a sum over the calls: each gives its own and that of its calls.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.autodiff.activity import as_operand, is_always
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, NotDifferentiable, types_of
from runtime.autodiff.residuals import inner_variables, rebuild, substitute
from runtime.autodiff.tape import Entry, Grad, Grads, Tape
from runtime.ir import ArrayType, Block, ObjectType, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.ops.recursion import name_of
from runtime.tracer.memory.conditions import ALWAYS, known, when
from runtime.tracer.recording.session import Scope


@dataclass(eq=False)
class Calls:
    """What holds of all calls of a recursion, as far as one replay of its body has shown it."""

    op: Operator
    active: set[int]
    """The arguments that need a gradient in some calls."""
    settled: set[int]
    """Those of which it holds in every call, if in any; the others have a flag beside."""
    results: set[int] = field(default_factory=set)
    """The results that have one."""
    settled_results: set[int] = field(default_factory=set)
    grown: bool = False
    """Whether the body showed more that is active than was known."""
    doubtful: set[int] = field(default_factory=set)
    """The arguments that the body gives without a gradient in some calls."""
    backward: str = ""
    """The name of the recursion that is the gradient, while its body is recorded."""
    outer: list[Variable] = field(default_factory=list)
    """Tensors from outside that may get a gradient in the body."""
    given_none: set[int] = field(default_factory=set)
    """The results whose gradient is None in some calls."""
    gives_none: set[Variable] = field(default_factory=set)
    """Arguments of the body, and tensors from outside, to which some calls give None though they get gradients."""

    @property
    def flagged(self) -> list[int]:
        """The arguments that have a flag."""
        return sorted(self.active - self.settled)

    @property
    def flagged_results(self) -> list[int]:
        """The results that have one."""
        return sorted(self.results - self.settled_results)

    def grow(self, what: set[int], found: Collection[int]) -> None:
        """Add to what is known."""
        if not what.issuperset(found):
            what.update(found)
            self.grown = True

    def believed(self, doubtful_results: set[int]) -> bool:
        """Whether what was taken to be settled is, once all that is active is known; what is not is no longer."""
        doubts = self.settled & self.doubtful, self.settled_results & doubtful_results
        self.settled -= self.doubtful
        self.settled_results -= doubtful_results
        return not any(doubts)


@dataclass(eq=False)
class CallEntry(Entry):
    """A call, in the body or from outside: ``frame`` is what it kept."""

    op: Operator
    calls: Calls
    frame: Variable


@dataclass(eq=False)
class RecursionEntry(CallEntry):
    """The call from outside, with the body."""

    body_scope: Scope
    tape: Tape
    pack: Operator
    """Makes the frame of a call."""


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """The body once; what its frames hold is added later.

    Errors raised: NotDifferentiable for a Program that writes memory, lists that need a gradient, and derivatives.
    """
    session = forward.session
    (body,) = op.blocks
    _require_plain(forward, op)
    operands = [forward.lower(arg) for arg in op.args]
    active = {place for place, arg in enumerate(op.args) if _needs(forward, arg)}
    calls = Calls(op, active, {place for place in active if is_always(forward.activity_of(op.args[place]))})
    calls.settled_results.update(range(len(op.outputs)))
    before = forward.recursions.get(name_of(op))
    forward.recursions[name_of(op)] = calls
    inside = inner_variables(body)
    while True:
        calls.grown, calls.doubtful = False, set()
        for var in inside:
            forward.activity.pop(var, None)
        with session.open("recursion") as scope:
            _enter(forward, calls, [forward.plain(arg) for arg in op.args])
            inner = forward.block(body)
            reached = {place for place, value in enumerate(body.yields) if _needs(forward, value)}
            calls.grow(calls.results, reached)
            if calls.grown or not calls.believed({
                place for place in calls.results if not is_always(forward.activity_of(body.yields[place]))
            }):
                continue
            frame = session.new_variable(ObjectType())
            pack = Operator("frame.new", (), {}, (frame,), location=op.location)
            rows = [forward.lower(value) for value in body.yields]
            flags = [as_operand(session, forward.activity_of(body.yields[place])) for place in calls.flagged_results]
            scope.block.ops.append(pack)
            scope.block.yields.extend([*rows, frame, *flags])
            ends = [forward.plain(value) for value in body.yields]
        break
    del forward.recursions[name_of(op)]
    if before is not None:
        forward.recursions[name_of(op)] = before
    recorded = _call(forward, calls, op, operands, ends, [scope.block])
    tape.entries.append(RecursionEntry(op, calls, recorded, scope, inner, pack))


def again(forward: Forward, op: Operator, tape: Tape) -> None:
    """A call in the body: what it shows of arguments counts for all calls."""
    calls = forward.recursions[name_of(op)]
    found = {place for place, arg in enumerate(op.args) if _needs(forward, arg)}
    calls.grow(calls.active, found)
    calls.doubtful.update(place for place in calls.active if not is_always(forward.activity_of(op.args[place])))
    frame = _call(forward, calls, op, [forward.lower(arg) for arg in op.args], [], [])
    tape.entries.append(CallEntry(op, calls, frame))


def _require_plain(forward: Forward, op: Operator) -> None:
    """Errors raised: NotDifferentiable."""
    (body,) = op.blocks
    if forward.versions.counting:
        raise NotDifferentiable("a function that calls itself, where memory is written")
    inside = inner_variables(body)
    if not forward.wanted.isdisjoint(inside) or not forward.blocked.isdisjoint(inside):
        raise NotDifferentiable("gradients that are asked for inside of a function that calls itself")
    for inner in body.walk():
        if inner.name.startswith("frame."):
            raise NotDifferentiable("the gradient of a gradient of a function that calls itself")
        if "checkpoints" in inner.attrs:
            raise NotDifferentiable("a loop with checkpoints in a function that calls itself")
    values = (*body.captures(), *leaves_of(op.args), *body.args, *op.outputs)
    if any(isinstance(var.type, ArrayType) and forward.is_active(var) for var in values):
        raise NotDifferentiable("a list that a function which calls itself is given")


def leaves_of(operands: Sequence[Operand]) -> list[Variable]:
    """The Variables among some operands."""
    return [one for one in operands if isinstance(one, Variable)]


def _needs(forward: Forward, value: Operand) -> bool:
    return isinstance(value, Variable) and forward.is_active(value) and forward.can_carry(value)


def _enter(forward: Forward, calls: Calls, inits: Sequence[Any]) -> None:
    """Block arguments and stand-ins for the arguments of a call; flags for what needs a gradient in some calls."""
    session, args = forward.session, forward.session.scope.block.args
    for place, arg in enumerate(calls.op.blocks[0].args):
        new = session.new_variable(arg.type, arg.hint)
        args.append(new)
        forward.env[arg] = _lifted(forward, new, arg, [inits[place]])
        forward.activity[arg] = known(place in calls.active)
    for place in calls.flagged:
        flag = session.new_variable(ScalarType("bool"))
        args.append(flag)
        forward.activity[calls.op.blocks[0].args[place]] = when(flag)


def _lifted(forward: Forward, new: Variable, old: Variable, likes: Sequence[Any]) -> Any:
    """The stand-in for a Variable that carries what ``old`` did."""
    if not isinstance(old.type, TensorType):
        return forward.lift(new, old, list(likes))
    fakes = [like for like in likes if isinstance(like, torch.Tensor)]
    return forward.lift_tensor(new, old, fakes[0].device if fakes else None)


def _call(
    forward: Forward, calls: Calls, op: Operator, operands: list[Operand], ends: Sequence[Any], blocks: list[Block]
) -> Variable:
    """Record a call; its frame."""
    session = forward.session
    flags = [as_operand(session, forward.activity_of(op.args[place])) for place in calls.flagged]
    types: list[Type] = [*types_of(op.outputs), ObjectType(), *(ScalarType("bool") for _ in calls.flagged_results)]
    outputs = session.emit(
        op.name, [*operands, *flags], None, types, hints=[out.hint for out in op.outputs], blocks=blocks,
        attrs={"name": name_of(op)}, location=op.location,
    )  # fmt: skip
    needed = dict(zip(calls.flagged_results, outputs[len(op.outputs) + 1 :]))
    for place, (old, new) in enumerate(zip(op.outputs, outputs)):
        forward.env[old] = _lifted(forward, new, old, ends[place : place + 1])
        if place in calls.results:
            forward.activity[old] = when(needed[place]) if place in needed else ALWAYS
    return outputs[len(op.outputs)]


# -- backward


def backward(backward: Backward, entry: RecursionEntry, grads: Grads) -> None:
    """The calls again, each after those that it made."""
    calls, forward, session = entry.calls, backward.forward, backward.session
    given = _given(entry, grads)
    if not given:
        return
    (body,) = entry.op.blocks
    session.replaying.location = entry.op.location  # type: ignore[union-attr]
    calls.backward = session.new_name(f"{name_of(entry.op)}_backward")
    calls.outer = [var for var in body.captures() if _needs(forward, var)]
    calls.given_none, calls.gives_none = set(), set()
    _note_none(calls, given)
    wanted = [*(body.args[place] for place in sorted(calls.active)), *calls.outer]
    while True:  # a call that makes none is right about what it gives, and so is one that makes calls that are
        known_none = len(calls.given_none), len(calls.gives_none)
        with session.open("recursion") as scope:
            scope.forward = entry.body_scope
            frame = session.new_variable(ObjectType())
            mine: Grads = {}
            args = [_arrive(backward, entry, place, mine) for place in sorted(calls.results)]
            backward.block(entry.tape, mine)
            found = [mine.get(var) for var in wanted]
            calls.gives_none.update(var for var, grad in zip(wanted, found) if grad is None or grad.maybe)
            if known_none != (len(calls.given_none), len(calls.gives_none)):
                continue
            scope.block.args = [frame, *args]
            scope.block.yields = [None if grad is None else backward.contiguous(grad) for grad in found]
        break
    _emit(backward, entry, given, grads, [scope.block])
    _keep_residuals(backward, entry, scope, frame)


def backward_again(backward: Backward, entry: CallEntry, grads: Grads) -> None:
    """A call in the body."""
    given = _given(entry, grads)
    if given:
        _note_none(entry.calls, given)
        _emit(backward, entry, given, grads, [])


def _note_none(calls: Calls, given: dict[int, Grad]) -> None:
    """Note the results of a call whose gradient is, or may be, None."""
    calls.given_none.update(place for place in calls.results if place not in given or given[place].maybe)


def _given(entry: CallEntry, grads: Grads) -> dict[int, Grad]:
    found = {place: grads.pop(out) for place, out in enumerate(entry.op.outputs) if out in grads}
    return {place: grad for place, grad in found.items() if place in entry.calls.results}


def _arrive(backward: Backward, entry: RecursionEntry, place: int, mine: Grads) -> Variable:
    """The Block argument for the gradient of a result."""
    session, forward = backward.session, backward.forward
    operand = entry.op.blocks[0].yields[place]
    like = forward.env.get(operand) if isinstance(operand, Variable) else None
    if not isinstance(like, torch.Tensor):
        like = forward.env[entry.op.outputs[place]]
    arg = session.new_variable(session.type_of(like))
    if _needs(forward, operand):
        assert isinstance(operand, Variable)
        backward.add(mine, operand, Grad(backward.like(like, arg), maybe=place in entry.calls.given_none))
    return arg


def _emit(
    backward: Backward, entry: CallEntry, given: dict[int, Grad], grads: Grads, blocks: list[Block]
) -> None:
    """Record a call of the gradient, and add what it gives."""
    session, calls = backward.session, entry.calls
    places = sorted(calls.active)
    starts = [backward.contiguous(given[place]) if place in given else None for place in sorted(calls.results)]
    args = calls.op.blocks[0].args
    types = [backward.type_like(var) for var in (*(args[place] for place in places), *calls.outer)]
    outputs = session.emit(
        entry.op.name, [entry.frame, *starts], None, types, blocks=blocks,
        attrs={"name": calls.backward, "backward": True}, location=entry.op.location,
    )  # fmt: skip
    for place, out in zip(places, outputs):
        arg = entry.op.args[place]
        if isinstance(arg, Variable) and _needs(backward.forward, arg):
            backward.add(grads, arg, backward.grad_of(arg, out, args[place] in calls.gives_none))
    for var, out in zip(calls.outer, outputs[len(places) :]):
        backward.add(grads, var, backward.grad_of(var, out, var in calls.gives_none))


def _keep_residuals(backward: Backward, entry: RecursionEntry, scope: Scope, frame: Variable) -> None:
    """What the body's backward reads of its forward stands in the frame."""
    session, pack, inside = backward.session, entry.pack, entry.body_scope
    wanted = [var for var in scope.block.captures() if var in inside.names]
    mapping: dict[Variable, Variable] = {}
    taken: list[Operator] = []
    for var in rebuild(inside.block, scope.block, wanted, backward.rebuilds(), session.new_name):
        if var not in pack.args:
            pack.args = (*pack.args, var)
        item = session.new_variable(var.type, var.hint, scope)
        taken.append(
            Operator("frame.get", (frame, pack.args.index(var)), {}, (item,), location=entry.op.location))
        mapping[var] = item
    inside.block.ops.remove(pack)
    inside.block.ops.append(pack)
    substitute(scope.block, mapping)
    scope.block.ops[:0] = taken


__all__ = ["CallEntry", "RecursionEntry", "again", "backward", "backward_again", "forward"]
