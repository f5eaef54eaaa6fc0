"""``cond`` and ``switch`` as ``If``.

    %y = switch(%n) { yield %a } { yield %b } { yield %c }    ->    If(n == 0, a, If(n == 1, b, c))
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from runtime.export.onnx.translator import Translator
from runtime.export.onnx.writer import Refused, Value
from runtime.export.shared import Nothing
from runtime.ir import Block, Operator, Variable


def emit_cond(t: Translator, op: Operator) -> None:
    """``cond``: one ``If``."""
    then, orelse = op.blocks
    _choose(t, op, [(t.flag(op.args[0]), then)], orelse)


def emit_switch(t: Translator, op: Operator) -> None:
    """``switch``: an ``If`` inside the other for each Block but the last."""
    w = t.w
    index, count = t.number(op.args[0], "int"), len(op.blocks)
    zero, many = w.constant(0, torch.int64), w.constant(count, torch.int64)
    index = w.either(w.test("Less", index, zero), w.node("Add", index, many, like=index), index)
    outside = w.flags("Or", w.test("Less", index, zero), w.test("GreaterOrEqual", index, many))
    w.fail_if(outside, "IndexError: list index out of range")
    tests = [(w.test("Equal", index, w.constant(place, torch.int64)), block)
             for place, block in enumerate(op.blocks[:-1])]  # fmt: skip
    _choose(t, op, tests, op.blocks[-1])


def _choose(t: Translator, op: Operator, tests: Sequence[tuple[Value, Block]], last: Block) -> None:
    kept = [place for place, out in enumerate(op.outputs) if not _without_form(t, op, place, out)]
    made = _nested(t, op, tests, last, kept)
    for place, value in zip(kept, made):
        t.give(op.outputs[place], value)


def _without_form(t: Translator, op: Operator, place: int, out: Variable) -> bool:
    """Whether an output is nothing that ONNX has a form for; who reads it is refused."""
    try:
        t.dtype(out.type)
    except Refused as error:
        t.give(out, Nothing(error.reason))
        return True
    return False


def _nested(t: Translator, op: Operator, tests: Sequence[tuple[Value, Block]], last: Block, kept: Sequence[int],
            ) -> list[Value]:  # fmt: skip
    if not tests:
        t.block(last)
        return [t.yielded(last.yields[place], op.outputs[place].type) for place in kept]
    (flag, block), *rest = tests
    w = t.w
    flag = w.told(flag)
    with w.graph("then", flag) as then:
        t.block(block)
        then.outputs += [t.yielded(block.yields[place], op.outputs[place].type) for place in kept]
        _never_empty(t, then.outputs)
    with w.graph("else", flag, runs_if_not=True) as orelse:
        orelse.outputs += _nested(t, op, rest, last, kept)
        _never_empty(t, orelse.outputs)
    outputs = [t.new(op.outputs[place].type) for place in kept]
    given = outputs or [w.value(torch.bool, ())]
    w.add("If", [flag], given, {"then_branch": then.finished, "else_branch": orelse.finished})
    return outputs


def _never_empty(t: Translator, outputs: list[Value]) -> None:
    """An ``If`` has at least one result."""
    if not outputs:
        outputs.append(t.w.constant(False, torch.bool))


__all__ = ["emit_cond", "emit_switch"]
