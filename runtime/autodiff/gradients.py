"""``gradients``: gradients asked for inside a Program, written out as Operators of the same Program.

    %g = gradients([%loss], [%w])      ->      the derivative of what leads from %w to %loss, recorded in its place

The Program is replayed like the forward half of a derivative; where the Operator stands, the tape so far is walked
back. What needs a graph across iterations of a loop is left to the reference: torch's autograd at run time.
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.autodiff.activity import as_operand
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, NotDifferentiable
from runtime.autodiff.tape import ArrayEntry, Entry, Grad, Grads, ListGrad, Segment, Tape
from runtime.ir import Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.walk import map_operand
from runtime.tracer.memory.conditions import ALWAYS, NEVER, known
from runtime.tracer.numbers import scalars


def leaf(forward: Forward, op: Operator, tape: Tape) -> None:
    """A tensor without history (``detach`` too): recorded as it is, a value of its own.

    What is made of a leaf needs a gradient, though the leaf's own goes nowhere.
    """
    fake = forward.plain(op.args[0])
    (new,) = forward.session.emit(
        op.name, [forward.session.read(fake)], types=[op.outputs[0].type], hints=[op.outputs[0].hint]
    )
    forward.env[op.outputs[0]] = forward.lift(new, op.outputs[0], [forward.stable(fake)])
    assert forward.session.replaying is not None
    if op.name == "grad.leaf" and not forward.session.replaying.lowering:
        forward.activity[op.outputs[0]] = ALWAYS


def needed(forward: Forward, op: Operator, tape: Tape) -> None:
    """Whether a tensor has a history: the flag that travels with it."""
    session = forward.session
    (tensor,) = op.args
    assert session.replaying is not None
    if session.replaying.lowering:  # what has a history is not known yet
        (new,) = session.emit(op.name, [forward.lower(tensor)])
        forward.env[op.outputs[0]] = scalars.wrap(new)
    else:
        flag = as_operand(session, forward.activity_of(tensor))
        forward.env[op.outputs[0]] = session.scalar("bool", scalars.wrap(flag) if isinstance(flag, Variable) else flag)


def history(forward: Forward, op: Operator, tape: Tape) -> None:
    """The name of a node that the caller made: asked of the very tensor."""
    (new,) = forward.session.emit(
        op.name, [forward.session.operand(forward.plain(op.args[0]))], types=[ScalarType("str")], location=op.location)
    forward.env[op.outputs[0]] = scalars.wrap(new)


def named(forward: Forward, op: Operator, tape: Tape) -> None:
    """A tensor that is there for its text: no gradient goes through it."""
    tensor = op.inputs[0]
    (new,) = forward.session.emit(
        op.name, [forward.lower(arg) for arg in op.args], types=[op.outputs[0].type], location=op.location)
    forward.env[op.outputs[0]] = forward.lift(new, op.outputs[0], [forward.stable(forward.plain(tensor))])
    forward.activity[op.outputs[0]] = NEVER


def repeat(forward: Forward, op: Operator, tape: Tape) -> None:
    """Another Operator of the gradient family, in a Program that has been differentiated already."""
    if any(forward.is_active(var) for var in op.inputs):
        raise NotDifferentiable(op.name)
    operands = [forward.lower(arg) for arg in op.args]
    outputs = forward.session.emit(op.name, operands, types=[out.type for out in op.outputs])
    devices = [value.device for value in map(forward.plain, op.inputs) if isinstance(value, torch.Tensor)]
    for old, new in zip(op.outputs, outputs):
        known = isinstance(old.type, TensorType) and old.type.shape is not None
        if isinstance(old.type, ScalarType):
            forward.env[old] = scalars.wrap(new)
        else:
            forward.env[old] = forward.lift_tensor(new, old, devices[0] if devices else None) if known else new


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """The gradients themselves, recorded here; or the Operator again, where another is written out first."""
    if op is not forward.target:
        _again(forward, op)
        return
    session = forward.session
    outputs: Any
    inputs: Any
    given: Any
    outputs, inputs, given = op.args
    assert session.replaying is not None
    checkpoint, session.replaying.checkpoint = session.replaying.checkpoint, False
    mode, session.replaying.grad_mode = session.replaying.grad_mode, op.grad_mode if op.attrs["create_graph"] else "off"
    deriving, session.replaying.deriving = session.replaying.deriving, True
    backward = Backward(session, forward)
    grads: Grads = {}
    with torch.enable_grad():
        for position, out in enumerate(outputs):
            start = _start(forward, out, None if given is None else given[position])
            if forward.is_active(out) and start is not None:
                backward.add(grads, out, Grad(start))
        found = _walk(forward, backward, grads, list(inputs))
        for out, wanted in zip(op.outputs, inputs):
            forward.env[out] = _result(forward, backward, op, op.outputs.index(out), found.get(wanted))
            # In a loop the next iteration may differentiate what is made of it.
            forward.activity[out] = known(bool(forward.loop_args) and op.attrs["create_graph"])
    session.replaying.checkpoint, session.replaying.grad_mode = checkpoint, mode
    session.replaying.deriving = deriving


def _start(forward: Forward, out: Variable, given: Operand) -> torch.Tensor | None:
    fake = forward.plain(out)
    if given is None:
        return torch.ones(tuple(fake.shape), dtype=fake.dtype, device=fake.device)
    value = forward.plain(given)
    assert isinstance(value, torch.Tensor)
    return forward.detached(value)


def _walk(forward: Forward, backward: Any, grads: Grads, inputs: list[Variable]) -> Grads:
    """Walk back the tapes of this Block and those around it; the gradients of ``inputs``."""
    found: Grads = {}
    for tape in reversed(forward.tapes):
        for entry in reversed(tape.entries):
            made = _made(entry)
            found.update((var, grads[var]) for var in inputs if var in made and var in grads)
            backward.block(Tape([entry]), grads)
    for var in inputs:
        if var in grads:
            found[var] = grads[var]
    for var, grad in grads.items():
        if var in forward.loop_args and var not in inputs and not isinstance(grad, ListGrad):
            raise NotDifferentiable("gradients that flow from one iteration of a loop to another")
    return found


def _made(entry: Entry) -> Any:
    if isinstance(entry, Segment):
        return entry.results
    assert isinstance(entry, ArrayEntry) or hasattr(entry, "op")
    return entry.op.outputs


def _result(forward: Forward, backward: Any, op: Operator, place: int, grad: Grad | None) -> Any:
    if grad is None:
        if op.attrs.get("materialize_grads"):
            wanted: Any = op.args[1]
            return backward.zeros(forward.plain(wanted[place]))
        if op.attrs["allow_unused"]:
            return None
        raise NotDifferentiable("a gradient that is never there")
    if not grad.maybe:
        return grad.tensor
    if op.attrs.get("materialize_grads"):
        return backward.definite(grad)
    if op.attrs["allow_unused"]:
        return grad.tensor
    return backward.emit_grad("grad.required", [forward.session.read(grad.tensor), place], grad.tensor)


def _again(forward: Forward, op: Operator) -> None:
    session = forward.session

    def read(operand: Operand) -> Operand:
        return map_operand(operand, lambda var: session.operand(forward.plain(var)))

    made = session.emit(
        op.name, [read(arg) for arg in op.args], types=[out.type for out in op.outputs], attrs=op.attrs,
        hints=[out.hint for out in op.outputs], location=op.location,
    )  # fmt: skip
    wanted: Any = op.args[1]
    for out, new, var in zip(op.outputs, made, wanted):
        forward.env[out] = forward.lift(new, out, [forward.plain(var)])
