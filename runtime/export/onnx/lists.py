"""Lists that grow as sequences of tensors.

    %ys = array.append(%xs, %x)    ->    ys = SequenceInsert(xs, x)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from runtime.export.onnx.scalars import Calculator
from runtime.export.onnx.translator import Translator, shape_of
from runtime.export.onnx.writer import Refused, Value, is_sequence, torch_dtype
from runtime.ir import ArrayType, Operator, Variable


def _list_type(op: Operator, place: int = 0) -> ArrayType:
    type_ = op.outputs[place].type
    if not isinstance(type_, ArrayType):
        raise Refused("a list of values of several kinds")
    return type_


def _insert(t: Translator, array: Value, item: Value, *where: Value) -> Value:
    return t.w.node("SequenceInsert", array, item, *where, like=array)


def sequence(t: Translator, operand: Any, type_: ArrayType) -> Value:
    """A list as a sequence: a list of the run, or one whose items are told."""
    if isinstance(operand, Variable):
        found = t.value(operand)
        if not is_sequence(found):
            raise Refused("the rows of a tensor as a list")
        return found
    if not isinstance(operand, Iterable) or isinstance(operand, str):
        raise Refused("this as a list")
    made = t.empty_list(type_)
    for item in operand:
        made = _insert(t, made, t.yielded(item, type_.element))
    return made


def _index(t: Translator, array: Value, operand: Any) -> Value:
    """An index counted from the beginning."""
    w, c = t.w, Calculator(t.w)
    index = t.number(operand, "int")
    length = _length_of(t, array)
    index = w.either(w.test("Less", index, c.int(0)), c.op("Add", index, length), index)
    outside = w.flags("Or", w.test("Less", index, c.int(0)), w.test("GreaterOrEqual", index, length))
    w.fail_if(outside, "IndexError: list index out of range")
    return index


def _length_of(t: Translator, array: Value) -> Value:
    return t.w.node("SequenceLength", array, dtype=torch.int64, shape=[])


def _each(t: Translator, count: Value, begin: Value, item: Callable[[Value], Value]) -> Value:
    """A list with an item for each number below a count at its end."""
    w = t.w
    with w.graph("items") as inner:
        number, going = w.value(torch.int64, ()), w.value(torch.bool, ())
        array = w.value(torch_dtype(begin), sequence=True)
        inner.inputs += [number, going, array]
        inner.outputs += [w.constant(True, torch.bool), _insert(t, array, item(number))]
    made = w.value(torch_dtype(begin), sequence=True)
    w.add("Loop", [count, None, begin], [made], {"body": inner.finished})
    return made


def _at(t: Translator, array: Value, index: Value) -> Value:
    return t.w.node("SequenceAt", array, index, dtype=torch_dtype(array))


# --- rules


def _new(t: Translator, op: Operator) -> None:
    type_ = _list_type(op)
    t.give(op.outputs[0], sequence(t, op.args[0], type_))


def _append(t: Translator, op: Operator) -> None:
    type_ = _list_type(op)
    array = sequence(t, op.args[0], type_)
    t.give(op.outputs[0], _insert(t, array, t.yielded(op.args[1], type_.element)))


def _get(t: Translator, op: Operator) -> None:
    array = t.value(op.args[0])
    out = op.outputs[0]
    index = _index(t, array, op.args[1])
    t.give(out, t.w.node("SequenceAt", array, index, dtype=t.dtype(out.type), shape=shape_of(out.type)))


def _set(t: Translator, op: Operator) -> None:
    type_ = _list_type(op)
    array = sequence(t, op.args[0], type_)
    index = _index(t, array, op.args[1])
    without = t.w.node("SequenceErase", array, index, like=array)
    t.give(op.outputs[0], _insert(t, without, t.yielded(op.args[2], type_.element), index))


def _len(t: Translator, op: Operator) -> None:
    array = t.value(op.args[0])
    t.give(op.outputs[0], _length_of(t, array))


def _pop(t: Translator, op: Operator) -> None:
    array = sequence(t, op.args[0], _list_type(op))
    index = _index(t, array, op.args[1] if len(op.args) > 1 else -1)
    out = op.outputs[1]
    t.give(op.outputs[0], t.w.node("SequenceErase", array, index, like=array))
    t.give(out, t.w.node("SequenceAt", array, index, dtype=t.dtype(out.type), shape=shape_of(out.type)))


def _extend(t: Translator, op: Operator) -> None:
    type_ = _list_type(op)
    array = sequence(t, op.args[0], type_)
    if isinstance(op.args[1], Variable):
        other = sequence(t, op.args[1], type_)
        made = _each(t, _length_of(t, other), array, lambda number: _at(t, other, number))
    else:
        made = array
        for item in op.args[1]:
            made = _insert(t, made, t.yielded(item, type_.element))
    t.give(op.outputs[0], made)


def _slice(t: Translator, op: Operator) -> None:
    w, c = t.w, Calculator(t.w)
    type_ = _list_type(op)
    where: Any = op.args[1]
    array = sequence(t, op.args[0], type_)
    step = 1 if where.step is None else where.step
    if type(step) is not int or step == 0:
        raise Refused("a slice of a list with a step that only the run knows")
    length = _length_of(t, array)
    low, high = (c.int(0), length) if step > 0 else (c.int(-1), c.op("Sub", length, c.int(1)))

    def bound(operand: Any, missing: Value) -> Value:
        if operand is None:
            return missing
        index = t.number(operand, "int")
        index = w.either(w.test("Less", index, c.int(0)), c.op("Add", index, length), index)
        return c.op("Min", c.op("Max", index, low), high)

    first, last = (bound(*one) for one in zip((where.start, where.stop), (low, high)[:: 1 if step > 0 else -1]))
    span = c.op("Sub", last, first) if step > 0 else c.op("Sub", first, last)
    count = c.op("Max", c.op("Div", c.op("Add", span, c.int(abs(step) - 1)), c.int(abs(step))), c.int(0))

    def item(number: Value) -> Value:
        return _at(t, array, c.op("Add", first, c.op("Mul", number, c.int(step))))

    t.give(op.outputs[0], _each(t, count, t.empty_list(type_), item))


def _fill(t: Translator, op: Operator) -> None:
    type_ = _list_type(op)
    item = t.yielded(op.args[1], type_.element)
    count = _length_of(t, t.value(op.args[0]))
    t.give(op.outputs[0], _each(t, count, t.empty_list(type_), lambda number: item))


def _lookup(t: Translator, op: Operator) -> None:
    """None in the table is a filler: another list says which items are numbers."""
    array, given = t.value(op.args[0]), op.args[1]
    assert isinstance(given, (list, tuple))
    table = t.w.constant([0 if one is None else one for one in given], torch.int64)

    def item(number: Value) -> Value:
        return t.w.node("Gather", table, _at(t, array, number), dtype=torch.int64, shape=[])

    t.give(op.outputs[0], _each(t, _length_of(t, array), t.empty_list(_list_type(op)), item))


def _refused(t: Translator, op: Operator) -> None:
    raise Refused("there is no rule for it")


_RULES: dict[str, Callable[[Translator, Operator], None]] = {
    "new": _new, "append": _append, "get": _get, "set": _set, "load": _get, "store": _set, "len": _len, "pop": _pop,
    "extend": _extend, "concat": _extend, "slice": _slice, "fill": _fill, "lookup": _lookup,
}  # fmt: skip


def emit(t: Translator, op: Operator) -> None:
    """Any list Operator."""
    _RULES.get(op.name.removeprefix("array."), _refused)(t, op)


def operators() -> list[str]:
    """The list operators that have a rule."""
    return sorted(_RULES)


__all__ = ["emit", "operators", "sequence"]
