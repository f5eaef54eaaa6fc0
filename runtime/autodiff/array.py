"""Lists that grow: the gradient of a list is a list of gradients, None where an item has none.

    b = append(a, x)   ->   ga, gx = pop(gb)         x = get(a, i)   ->   ga = put(ga, i, gx)
    y = stack(a)       ->   ga = unbind(gy)          b = a + c       ->   ga, gc = cut(gb, len(a))
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.autodiff.activity import as_operand, is_always, is_never, join_activity
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, NotDifferentiable, modes, types_of
from runtime.autodiff.tape import Activity, ArrayEntry, Grads, ListGrad, Tape
from runtime.ir import UNDEF, ArrayType, Operand, Operator, ScalarType, TensorType, Variable
from runtime.ir.definition import About, definition_of
from runtime.ir.operator import leaves
from runtime.tracer.memory.conditions import ALWAYS, when
from runtime.tracer.recording.session import Session

_SIZES = ArrayType(ScalarType("int"))
FLAGS = ArrayType(ScalarType("bool"))


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """Record the Operator as it is, and the lengths and sizes that its gradient needs."""
    session = forward.session
    active = join_activity(forward.activity_of(var) for var in leaves(op.args))
    joins = definition_of(op.name).about is not About.LISTS
    with modes(op):
        reached = not active.never and (torch.is_grad_enabled() or not joins)
    if joins and reached and op.name not in ("aten.stack.default", "aten.cat.default"):
        raise NotDifferentiable(op.name)
    if reached and any(map(_holds_lists, op.outputs)):  # the gradient of a list has one for each item, which is none
        raise NotDifferentiable("a list of lists whose lengths only the run knows")
    operands = [forward.lower(arg) for arg in op.args]
    if forward.versions.counting and not joins:
        versions = forward.versions
        items = [item for item in map(forward.plain, leaves(op.args)) if isinstance(item, torch.Tensor)]
        versions.chances.listed += [versions.chances.event(versions.memory(item)) for item in items]
    outputs = session.emit(
        op.name,
        operands,
        {key: forward.lower(value) for key, value in op.kwargs.items()},
        types_of(op.outputs),
        hints=[out.hint for out in op.outputs],
        location=op.location,
    )
    like = _like(forward, op)
    for old, new in zip(op.outputs, outputs):
        if isinstance(old.type, ArrayType):
            forward.env[old] = new
            if like is not None and forward.can_carry(old):
                forward.items[new] = like
        else:
            tensor = isinstance(old.type, TensorType)
            device = None if like is None else like.device
            forward.env[old] = forward.lift_tensor(new, old, device) if tensor else forward.lift(new, old, [])
            if tensor and not joins:
                forward.versions.chances.taken.add(forward.versions.memory(forward.env[old]))
    if op.name == "array.new" and not op.args[0]:
        forward.empty.add(op.outputs[0])
    if reached:
        for old, activity in zip(op.outputs, _activities(forward, op, operands)):
            if not is_never(activity) and forward.can_carry(old):
                forward.activity[old] = activity
        tape.entries.append(ArrayEntry(op, _FACTS.get(op.name, _no_facts)(forward, op, operands, outputs)))


def _holds_lists(var: Variable) -> bool:
    """Whether a value is a list of lists of what can have a gradient."""
    if not isinstance(var.type, ArrayType) or not isinstance(var.type.element, ArrayType):
        return False
    inner = var.type.element.element
    return not isinstance(inner, ScalarType)


# -- which items need a gradient -------------------------------------------------------------------------------------


def list_flags(session: Session, activity: Activity, array: Operand) -> Operand:
    """A list with one flag for each item of ``array``."""
    if array is UNDEF or isinstance(activity, Variable):
        return UNDEF if array is UNDEF else activity
    return session.emit("grad.flags", [array, as_operand(session, activity)])[0]


def _activities(forward: Forward, op: Operator, operands: list[Operand]) -> list[Activity]:
    """When the results of a list operator need a gradient: the same operator, on lists of flags."""
    session = forward.session
    args: list[Any] = list(op.args)
    lists = [arg for arg in args if isinstance(arg, Variable) and isinstance(arg.type, ArrayType)]
    given = {var: forward.activity_of(var) for var in leaves(op.args)}
    if all(is_always(given[var]) for var in given if var not in forward.empty and _counts(var)):
        return [ALWAYS] * len(op.outputs)
    if op.name == "array.new":
        flags = [as_operand(session, forward.activity_of(item)) for item in args[0]]
        return list(session.emit(op.name, [flags], types=[FLAGS]))
    if definition_of(op.name).about is not About.LISTS:
        parts = [_any_item(forward, activity) for activity in given.values()]
        return [join_activity(parts)]
    mirrored: list[Operand] = []
    for arg, operand in zip(args, operands):
        if arg in lists:
            mirrored.append(list_flags(session, given[arg], operand))
        elif isinstance(arg, (list, tuple)):
            mirrored.append([as_operand(session, forward.activity_of(item)) for item in arg])
        elif isinstance(arg, Variable) and _counts(arg):
            mirrored.append(as_operand(session, given[arg]))
        else:
            mirrored.append(operand)
    types = [FLAGS if isinstance(out.type, ArrayType) else ScalarType("bool") for out in op.outputs]
    made = session.emit(op.name, mirrored, types=types)
    return [out if isinstance(out.type, ArrayType) else when(out) for out in made]


def _counts(var: Variable) -> bool:
    """Whether a value is a tensor or a list of tensors, not a length or an index."""
    return not isinstance(var.type, ScalarType)


def _any_item(forward: Forward, activity: Activity) -> Activity:
    if not isinstance(activity, Variable):
        return activity
    return when(*forward.session.emit("grad.any_flag", [activity]))


def _like(forward: Forward, op: Operator) -> torch.Tensor | None:
    """A tensor like the items of the lists at hand."""
    for var in leaves(op.args):
        value = forward.plain(var)
        found = forward.items.get(value) if isinstance(value, Variable) else value
        if isinstance(found, torch.Tensor):
            return found
    return None


# -- facts ---------------------------------------------------------------------------------------------------------


def _length(forward: Forward, array: Operand) -> Variable:
    return forward.session.emit("array.len", [array])[0]


def _no_facts(forward: Forward, op: Operator, operands: list[Operand], outputs: Any) -> list[Any]:
    return []


def _length_fact(forward: Forward, op: Operator, operands: list[Operand], outputs: Any) -> list[Any]:
    return [_length(forward, operands[0])]


def _sizes_fact(forward: Forward, op: Operator, operands: list[Operand], outputs: Any) -> list[Any]:
    dim = operands[1] if len(operands) > 1 else 0
    return list(forward.session.emit("grad.sizes", [operands[0], dim]))


_FACTS: dict[str, Any] = {
    "array.get": _length_fact,
    "array.load": _length_fact,
    "array.pop": _length_fact,
    "array.extend": _length_fact,
    "array.concat": _length_fact,
    "array.slice": _length_fact,
    "aten.cat.default": _sizes_fact,
}


# -- backward ------------------------------------------------------------------------------------------------------


def backward(backward: Backward, entry: ArrayEntry, grads: Grads) -> None:
    """The gradients of what a list operator read."""
    given = [grads.pop(out, None) for out in entry.op.outputs]
    if any(grad is not None for grad in given):
        backward.session.replaying.location = entry.op.location  # type: ignore[union-attr]
        _BACKWARD[entry.op.name](_Context(backward, entry, grads, given))


class _Context:
    """One list operator on its way back: where its operands' gradients go."""

    def __init__(self, backward: Backward, entry: ArrayEntry, grads: Grads, given: list[Any]) -> None:
        self.backward = backward
        self.op = entry.op
        self.facts = entry.facts
        self.grads = grads
        self.given: list[Operand] = [None if grad is None else backward.contiguous(grad) for grad in given]

    def operand(self, position: int, default: Any = None) -> Operand:
        """An operand of the Operator as the new Program writes it."""
        args = self.op.args
        return self.backward.forward.lower(args[position]) if len(args) > position else default

    def wants(self, value: Operand) -> bool:
        return isinstance(value, Variable) and self.backward.forward.is_active(value)

    def emit(self, name: str, args: list[Operand], *values: Variable) -> tuple[Variable, ...]:
        """An Operator of ``runtime.ops.grad`` whose results are the gradients of these values."""
        return self.backward.session.emit(name, args, types=[self.backward.type_like(value) for value in values])

    def add(self, value: Operand, carrier: Variable) -> None:
        """A gradient, which may be None at run time, for an operand."""
        if self.wants(value):
            self.backward.add(self.grads, value, self.backward.grad_of(value, carrier, True))

    def replace(self, value: Variable, name: str, *rest: Operand) -> None:
        """The operand's list of gradients is used up and comes back with more in it."""
        before = self.grads.pop(value, None)
        (carrier,) = self.emit(name, [None if before is None else before.var, *rest], value)
        self.grads[value] = ListGrad(carrier)


def _new(context: _Context) -> None:
    items: Any = context.op.args[0]
    for position, item in enumerate(items):
        if context.wants(item):
            context.add(item, *context.emit("grad.list_get", [context.given[0], position], item))


def _append(context: _Context) -> None:
    array: Any
    item: Any
    array, item = context.op.args
    element = item if context.wants(item) else array
    type_ = array.type
    session = context.backward.session
    item_type = context.backward.type_like(element) if element is item else type_.element
    rest, last = session.emit("grad.list_pop", [context.given[0]], types=[type_, item_type])
    context.add(array, rest)
    context.add(item, last)


def _get(context: _Context) -> None:
    array = context.op.args[0]
    if context.wants(array):
        context.replace(array, "grad.list_put", context.facts[0], context.operand(1), context.given[0])


def _set(context: _Context) -> None:
    array: Any
    array, _, item = context.op.args
    type_ = context.backward.type_like(item) if context.wants(item) else array.type.element
    rest, taken = context.backward.session.emit(
        "grad.list_take", [context.given[0], context.operand(1)], types=[array.type, type_]
    )
    context.add(array, rest)
    context.add(item, taken)


def _pop(context: _Context) -> None:
    array = context.op.args[0]
    if context.wants(array):
        rest, item = context.given
        context.add(
            array, *context.emit("grad.list_insert", [rest, context.facts[0], context.operand(1, -1), item], array)
        )


def _join_lists(context: _Context) -> None:
    first, second = context.op.args
    if not isinstance(second, Variable):
        raise NotDifferentiable(context.op.name)
    parts = context.backward.session.emit(
        "grad.list_cut", [context.given[0], context.facts[0]], types=[first.type, second.type]
    )
    context.add(first, parts[0])
    context.add(second, parts[1])


def _slice(context: _Context) -> None:
    array = context.op.args[0]
    if context.wants(array):
        context.add(
            array, *context.emit("grad.list_spread", [context.given[0], context.facts[0], context.operand(1)], array)
        )


def _stack(context: _Context) -> None:
    array = context.op.args[0]
    if context.wants(array):
        context.add(array, *context.emit("grad.unstack", [context.given[0], context.operand(1, 0)], array))


def _cat(context: _Context) -> None:
    array = context.op.args[0]
    if context.wants(array):
        arguments = [context.given[0], context.facts[0], context.operand(1, 0)]
        context.add(array, *context.emit("grad.split", arguments, array))


_BACKWARD: dict[str, Any] = {
    "array.new": _new,
    "array.append": _append,
    "array.get": _get,
    "array.set": _set,
    "array.load": _get,
    "array.store": _set,
    "array.pop": _pop,
    "array.extend": _join_lists,
    "array.concat": _join_lists,
    "array.fill": lambda context: None,
    "array.slice": _slice,
    "aten.stack.default": _stack,
    "aten.cat.default": _cat,
}
"""How each list operator goes back."""
