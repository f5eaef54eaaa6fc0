"""``while_loop`` and ``scan`` as ``Loop``: one body, however many iterations a run does.

    %n, %h = while_loop(0, %x) { test } { body }    ->    Loop("", test(0, x), 0, x) { body; test of what it leaves }
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from runtime.export.onnx.translator import Translator, shape_of
from runtime.export.onnx.writer import Refused, Value
from runtime.export.shared import Nothing
from runtime.ir import ArrayType, Operand, Operator, TensorType, Variable
from runtime.ops import scan


def emit_while(t: Translator, op: Operator) -> None:
    """``while_loop``: the test is written twice, before the loop and at the end of its body."""
    w = t.w
    test, body = op.blocks
    kept = _kept(t, body.args)
    begin = [t.yielded(op.args[place], body.args[place].type) for place in kept]
    _bind(t, test.args, kept, begin)
    t.block(test)
    first = t.flag(test.yields[0])
    limit = op.attrs.get("max_iterations")
    going_on = w.value(torch.bool, ())
    with w.graph("body", going_on) as inner:
        inner.inputs += [w.value(torch.int64, ()), going_on]
        inner.inputs += [_input(t, arg) for arg in (body.args[place] for place in kept)]
        _bind(t, body.args, kept, inner.inputs[2:])
        t.block(body)
        left = [t.yielded(body.yields[place], body.args[place].type) for place in kept]
        _bind(t, test.args, kept, left)
        t.block(test)
        more = t.flag(test.yields[0])
        inner.outputs += [more, *([more] if limit is not None else []), *left]
        if limit is not None:
            inner.inputs.insert(2, w.value(torch.bool, ()))
    outputs = [t.new(op.outputs[place].type) for place in kept]
    most = None if limit is None else w.constant(limit, torch.int64)
    going = [w.value(torch.bool, ())] if limit is not None else []
    w.add("Loop", [most, first, *([first] if going else []), *begin], [*going, *outputs] or [w.value(torch.bool, ())],
          {"body": inner.finished})  # fmt: skip
    if going:
        done = limit + op.attrs.get("already", 0) if limit is not None else 0
        w.fail_if(going[0], f"RuntimeError: the loop has not ended after {done} iterations")
    _bind(t, op.outputs, kept, outputs)


def _kept(t: Translator, args: Sequence[Variable]) -> list[int]:
    """Which carried values ONNX has a form for; who reads another is refused."""
    kept = []
    for place, arg in enumerate(args):
        try:
            t.dtype(arg.type)
        except Refused:
            continue
        kept.append(place)
    return kept


def _bind(t: Translator, args: Sequence[Variable], kept: Sequence[int], values: Sequence[Value]) -> None:
    for arg in args:
        t.give(arg, Nothing("a value of a kind that only the run knows, such as None or text, in a loop"))
    for place, value in zip(kept, values):
        t.give(args[place], value)


def _input(t: Translator, arg: Variable) -> Value:
    return t.new(arg.type)


def emit_scan(t: Translator, op: Operator) -> None:
    """``scan``: carried values, slices by the number of the iteration, and rows that ``Loop`` puts together."""
    w = t.w
    (body,) = op.blocks
    count, reverse = scan.carried(op), bool(op.attrs.get("reverse"))
    zero = w.constant(0, torch.int64)
    length = t.number(op.args[0], "int")
    length = w.node("Max", length, zero, like=length)
    rows = list(range(count, len(op.outputs)))
    lists = [place for place in rows if isinstance(op.outputs[place].type, ArrayType)]
    stacked = [place for place in rows if place not in lists]
    args = body.args[1 : 1 + count]
    begin = [t.yielded(one, arg.type) for one, arg in zip(op.args[1 : 1 + count], args)]
    begin += [t.empty_list(_list(op.outputs[place])) for place in lists]
    going = w.value(torch.bool, ())
    with w.graph("body", going) as inner:
        number = w.value(torch.int64, ())
        inner.inputs += [number, going, *(_input(t, arg) for arg in args)]
        grown = [w.value(t.dtype(op.outputs[place].type), sequence=True) for place in lists]
        inner.inputs += grown
        if reverse:
            last = w.node("Sub", length, w.constant(1, torch.int64), like=length)
            number = w.node("Sub", last, number, like=number)
        t.give(body.args[0], number)
        for arg, value in zip(args, inner.inputs[2:]):
            t.give(arg, value)
        for column, arg in zip(scan.columns(op), body.args[1 + count :]):
            t.give(arg, _slice(t, column, arg, number))
        t.block(body)
        inner.outputs.append(w.constant(True, torch.bool))
        inner.outputs += [t.yielded(one, arg.type) for one, arg in zip(body.yields, args)]
        for value, place in zip(grown, lists):
            item = t.yielded(body.yields[place], _list(op.outputs[place]).element)
            where = [zero] if reverse else []
            inner.outputs.append(w.node("SequenceInsert", value, item, *where, like=value))
        inner.outputs += [t.value(body.yields[place]) for place in stacked]
    outputs = [t.new(op.outputs[place].type) for place in (*range(count), *lists)]
    made = [w.value(t.dtype(op.outputs[place].type), shape_of(op.outputs[place].type)) for place in stacked]
    w.add("Loop", [length, None, *begin], [*outputs, *made] or [w.value(torch.bool, ())], {"body": inner.finished})
    for place, value in zip((*range(count), *lists), outputs):
        t.give(op.outputs[place], value)
    for place, value in zip(stacked, made):
        t.give(op.outputs[place], _turned(t, value, length) if reverse else value)


def _list(out: Variable) -> ArrayType:
    assert isinstance(out.type, ArrayType)
    return out.type


def _slice(t: Translator, column: Operand, arg: Variable, number: Value) -> Value:
    value = t.value(column)
    if isinstance(column, Variable) and isinstance(column.type, TensorType):
        return t.w.node("Gather", value, number, dtype=t.dtype(arg.type), shape=shape_of(arg.type), axis=0)
    return t.w.node("SequenceAt", value, number, dtype=t.dtype(arg.type), shape=shape_of(arg.type))


def _turned(t: Translator, value: Value, length: Value) -> Value:
    """Rows the other way round."""
    w = t.w
    minus = w.constant(-1, torch.int64)
    order = w.node("Range", w.node("Add", length, minus, like=length), minus, minus, dtype=torch.int64, shape=["?"])
    return w.node("Gather", value, order, like=value, axis=0)


__all__ = ["emit_scan", "emit_while"]
