"""``custom_grad``: both Blocks in line, neither of them differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime.autodiff.activity import can_carry, join_activity
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, NotDifferentiable
from runtime.autodiff.segment import overwritten, raise_where, unless_none
from runtime.autodiff.stale import condition
from runtime.autodiff.tape import CustomEntry, Grad, Grads, Tape
from runtime.autodiff.versions import Watch
from runtime.ir import Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.ir.flow import Kind
from runtime.ir.walk import copy_block
from runtime.ops.custom_grad import backward_for
from runtime.tracer.memory.conditions import NEVER
from runtime.tracer.memory.storage_table import storage_key
from runtime.tracer.numbers import scalars
from runtime.tracer.recording.session import Scope, Session


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """The forward Block, without autograd. Errors raised: NotDifferentiable if it closes over an active tensor, or
    if it is an error and nothing else."""
    assert forward.session.replaying is not None
    inner, count = op.blocks[0], op.attrs["n_outputs"]
    for var in inner.captures():
        if forward.is_active(var):
            raise NotDifferentiable("custom_grad that closes over a tensor that needs a gradient")
    lowering = forward.session.replaying.lowering
    if not lowering and len(inner.yields) == count and [one.name for one in op.blocks[1].ops] == ["raise"]:
        raise NotDifferentiable("an error for who asks for some gradients only: torch's autograd tells who does")
    results = _again(forward, op) if lowering else _forward_in_line(forward, op)
    reached = join_activity(forward.activity_of(arg) for arg in op.args)
    hidden = op.attrs.get("not_differentiable", ())
    for index, (out, value) in enumerate(zip(op.outputs, results[:count])):
        forward.env[out] = forward.recorder.alias(value) if isinstance(value, torch.Tensor) else value
        if not reached.never and index not in hidden and can_carry(value) and op.grad_mode != "off":
            forward.activity[out] = reached
    residuals = results[count:]
    tape.entries.append(CustomEntry(op, residuals, results[:count], _watches(forward, op, residuals),
                                    forward.session.scope.kind == "main"))  # fmt: skip


def _watches(forward: Forward, op: Operator, residuals: list[Any]) -> dict[int, Watch]:
    """What tells whether the tensors that are kept for backward are written later."""
    versions = forward.versions
    if not versions.counting:
        return {}
    found = {place: versions.watch(versions.memory(one)) for place, one in enumerate(residuals)
             if isinstance(one, torch.Tensor)}  # fmt: skip
    versions.chances.kept += [versions.chances.event(watch.memory) for watch in found.values()]
    return found


def _forward_in_line(forward: Forward, op: Operator) -> list[Any]:
    """What the forward Block yields."""
    inner = op.blocks[0]
    values = [forward.plain(arg) if isinstance(arg, Variable) else arg for arg in op.args]
    for arg, value in zip(inner.args, values):
        forward.env[arg] = value
        forward.activity[arg] = NEVER
    with torch.no_grad():
        forward.block(inner)
    return [forward.plain(o) if isinstance(o, Variable) else o for o in inner.yields]


def _again(forward: Forward, op: Operator) -> list[Any]:
    """What the forward Block yields, where a gradient is written out and the Operator stays for those to come.

    What the gradient reads besides arguments and results becomes results of the Operator, too: those have no history.
    """
    session, count = forward.session, op.attrs["n_outputs"]
    known: dict[Variable, Operand] = {
        var: session.operand(forward.plain(var)) for block in op.blocks for var in block.captures()
    }
    blocks = [copy_block(block, dict(known), lambda name: session.new_name(name.partition(".")[0]))
              for block in op.blocks]  # fmt: skip
    inner = op.blocks[0]
    results = list(inner.yields[:count])
    made_inside = {out for inside in inner.walk() for out in inside.outputs}
    more = [place for place, one in enumerate(inner.yields)
            if place >= count and isinstance(one, Variable) and one in made_inside and one not in results]  # fmt: skip
    kept: list[Any] = [blocks[0].yields[place] for place in more]
    blocks[0].yields[count:count] = kept
    for block in blocks[1:]:
        block.args.extend(session.new_variable(one.type) for one in kept)
    attrs = {**op.attrs, "n_outputs": count + len(kept), "not_differentiable": [
        *op.attrs.get("not_differentiable", ()), *range(count, count + len(kept))]}  # fmt: skip
    if "given" in attrs:
        attrs["given"] = [[*one, *[False] * len(kept)] for one in attrs["given"]]
    olds: list[Any] = [*op.outputs, *(op.blocks[0].yields[place] for place in more)]
    made = session.emit(
        op.name, [forward.lower(arg) for arg in op.args], types=[one.type for one in olds], blocks=blocks,
        attrs=attrs, hints=[out.hint for out in op.outputs], location=op.location)
    values = [_lifted(forward, new, old) for old, new in zip(olds, made)]
    residuals: list[Any] = list(inner.yields[count:])
    for place, one in enumerate(residuals):
        if isinstance(one, Variable) and one in inner.args:
            given = op.args[inner.args.index(one)]
            residuals[place] = forward.plain(given) if isinstance(given, Variable) else given
        elif isinstance(one, Variable) and one in results:
            residuals[place] = values[results.index(one)]
        elif isinstance(one, Variable) and one not in made_inside:
            residuals[place] = forward.plain(one)
    for place, value in zip(more, values[count:]):
        residuals[place - count] = value
    return [*values[:count], *residuals]


def _lifted(forward: Forward, new: Variable, old: Variable) -> Any:
    if isinstance(old.type, TensorType):
        return forward.lift_tensor(new, old, None)
    return scalars.wrap(new) if isinstance(old.type, ScalarType) else new


def backward(backward: Backward, entry: CustomEntry, grads: Grads) -> None:
    """The user's own backward, in line; where no gradient arrived it does not run, as in eager."""
    forward, op = backward.forward, entry.op
    given = [grads.pop(out, None) for out in op.outputs]
    found = _under_conditions(backward, entry, given)
    for arg, grad in zip(op.args, found):
        if isinstance(arg, Variable) and forward.is_active(arg) and grad is not None:
            backward.add(grads, arg, grad)


def _under_conditions(backward: Backward, entry: CustomEntry, given: list[Any]) -> list[Grad | None]:
    """Record the backward for the gradients that are there; where only a run tells, for either case."""
    maybe = [index for index, grad in enumerate(given) if grad is not None and grad.maybe]
    apart = "given" in entry.op.attrs
    if all(grad is None for grad in given):
        return [None] * len(entry.op.args)
    if not maybe or (not apart and any(grad is not None and not grad.maybe for grad in given)):
        return [None if one is None else Grad(one) for one in _in_line(backward, entry, given)]
    if not apart:
        found = unless_none(backward, [given[index] for index in maybe], lambda: _in_line(backward, entry, given))
        return [None if one is None else Grad(one, True) for one in found]
    index = maybe[0]
    return _either(
        backward, given[index],
        lambda: _under_conditions(backward, entry, [*given[:index], None, *given[index + 1:]]),
        lambda: _under_conditions(backward, entry, [*given[:index], Grad(given[index].tensor), *given[index + 1:]]),
    )  # fmt: skip


def _in_line(backward: Backward, entry: CustomEntry, given: list[Any]) -> list[torch.Tensor | None]:
    forward, op = backward.forward, entry.op
    index = backward_for(op, [grad is not None for grad in given])
    if index is None:
        return [None] * len(op.args)
    if "autocast_asked" in op.attrs and any(enabled for _, enabled, _ in forward.session.autocast):
        raise NotDifferentiable("a backward that asks for the autocast state, under autocast")
    block = op.blocks[index]
    values: list[Any] = _residuals(backward, entry)
    for result, grad in zip(entry.results, given):
        if grad is not None:
            values.append(backward.definite(grad))
        elif "given" not in op.attrs and isinstance(result, torch.Tensor):
            values.append(backward.zeros(result))
        else:
            values.append(None)
    for arg, value in zip(block.args, values):
        forward.env[arg] = value
        forward.activity[arg] = NEVER
    replaying = forward.session.replaying
    assert replaying is not None
    mode, without = replaying.grad_mode, replaying.without_gradients
    if replaying.lowering and mode != "off" and "once" in op.attrs:
        raise NotDifferentiable("a backward that says itself whether gradients are on")
    replaying.without_gradients = without or mode == "off"
    try:
        with torch.no_grad():
            forward.block(block)
    finally:
        replaying.grad_mode, replaying.without_gradients = mode, without
    found = [forward.plain(operand) if isinstance(operand, Variable) else None for operand in block.yields]
    return [
        one if isinstance(arg, Variable) and forward.is_active(arg) and isinstance(one, torch.Tensor) else None
        for arg, one in zip(op.args, found)
    ]


def unchanged(forward: Forward, op: Operator, tape: Tape) -> None:
    """A test of what Python holds, before the loops that it would be made in again and again; the first in its Block,
    so that it parts no others, unless hooks of the user's are called there, which may change it.

    A gradient that is written out for the function itself is asked for while it runs, and not when backward is called:
    the trace has seen to it.
    """
    session = forward.session
    if session.replaying is not None and session.replaying.lowering:
        return
    args = [session.operand(forward.plain(arg)) for arg in op.args]
    scope, attrs = _before_loops(session, args), dict(op.attrs)
    if any(one.name == op.name and one.args == tuple(args) and one.attrs == attrs for one in scope.block.ops):
        return
    with session.reopen(scope):
        session.emit(op.name, args, None, [], attrs=attrs, location=op.location)
    ops = scope.block.ops
    if scope.before is None and not any(one.name == "py_func" for one in ops):
        test = ops.pop()
        made = [index for index, one in enumerate(ops) if not set(one.outputs).isdisjoint(test.inputs)]
        ops.insert(made[-1] + 1 if made else 0, test)


def _before_loops(session: Session, args: list[Operand]) -> Scope:
    """The outermost Block that sees some values and is in no loop that the Block at hand is not in."""
    found = scope = session.scope
    while scope.parent is not None:
        outer = scope.parent
        if scope.flow.kind in (Kind.LOOP, Kind.FUNCTION) and all(
                outer.sees(one) for one in args if isinstance(one, Variable)):  # fmt: skip
            found = outer
        scope = outer
    return found


def _residuals(backward: Backward, entry: CustomEntry) -> list[Any]:
    """What forward kept. Where a tensor that it saved was written since, eager raises; one that it only holds has the
    content of now.

    Errors raised: NotDifferentiable if only the run knows that content.
    """
    found = list(entry.residuals)
    held = entry.op.attrs.get("held", ())
    for place, watch in entry.watches.items():
        cases, value = watch.stale(), found[place]
        if cases and place not in held:
            raise_where(backward, condition(backward, cases), overwritten(watch, value, "a torch.autograd.Function"))
        elif cases:
            found[place] = _content(entry, watch, value)
    return found


def _content(entry: CustomEntry, watch: Watch, value: torch.Tensor) -> torch.Tensor:
    """What a tensor holds now that was written where the Program's own Block says so."""
    memory = watch.memory
    content, count = memory.content or (value, 0)
    straight = entry.in_main and not memory.parts and all(one.always for one in memory.writes)
    if not straight or count != len(memory.writes) or watch.cases or storage_key(value) not in map(
            storage_key, memory.stand_ins) or content.shape != value.shape:  # fmt: skip
        raise NotDifferentiable("a tensor that an autograd.Function holds and that is written since, on some path")
    return content


def _either(
    backward: Backward, grad: Grad, missing: Callable[[], list[Grad | None]], there: Callable[[], list[Grad | None]]
) -> list[Grad | None]:
    """A ``cond`` on whether a gradient is None; what only one way gives is None on the other."""
    session = backward.session
    flag = backward.none_test([grad])
    rows: list[list[Grad | None]] = []
    scopes: list[Scope] = []
    for record in (missing, there):
        with session.open("cond") as scope:
            rows.append(record())
        scopes.append(scope)
    reached = [index for index, pair in enumerate(zip(*rows)) if any(one is not None for one in pair)]
    for row, scope in zip(rows, scopes):
        with session.reopen(scope):
            for index in reached:
                one = row[index]
                scope.block.yields.append(None if one is None else backward.contiguous(one))
    likes = [next(one for row in rows if (one := row[index]) is not None).tensor for index in reached]
    types: list[Type] = [session.type_of(like) for like in likes]
    outputs = session.emit("cond", [flag], None, types, blocks=[scope.block for scope in scopes])
    result: list[Grad | None] = [None] * len(rows[0])
    for index, like, var in zip(reached, likes, outputs):
        certain = all((one := row[index]) is not None and not one.maybe for row in rows)
        result[index] = Grad(backward.like(like, var), not certain)
    return result
