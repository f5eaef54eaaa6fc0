"""``cond`` and ``switch`` as ``torch.cond``.

    %y = switch(%n) { yield %a } { yield %b } { yield %c }    ->    cond(n == 0, a, cond(n == 1, b, c))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.export.torch_export.translator import Captured, Translator, aten
from runtime.export.torch_export.values import number
from runtime.ir import Block, Operator

Test = tuple[Any, Block]
Tensors = tuple[torch.Tensor, ...]


def emit_cond(t: Translator, op: Operator) -> None:
    """``cond``: one ``torch.cond``; where the condition is known, its Block in place."""
    flag = t.flag(op.args[0])
    if isinstance(flag, bool):
        _in_place(t, op, op.blocks[0 if flag else 1])
        return
    _choose(t, op, flag, [(None, op.blocks[0])], op.blocks[1])


def emit_switch(t: Translator, op: Operator) -> None:
    """``switch``: a ``torch.cond`` inside the other for each Block but the last."""
    count = len(op.blocks)
    index = t.value(op.args[0])
    if type(index) is int and -count <= index < count:
        _in_place(t, op, op.blocks[index])
        return
    index = number(index, "int")
    index = aten.where.self(aten.lt.Scalar(index, 0), aten.add.Scalar(index, count), index)
    outside = aten.logical_or.default(aten.lt.Scalar(index, 0), aten.ge.Scalar(index, count))
    t.fail_if(outside, "IndexError: list index out of range")
    if count == 1:
        _in_place(t, op, op.blocks[0])
        return
    tests: list[Test] = [(place, block) for place, block in enumerate(op.blocks[:-1])]
    _choose(t, op, index, tests, op.blocks[-1])


def _in_place(t: Translator, op: Operator, block: Block) -> None:
    t.block(block)
    for out, operand in zip(op.outputs, block.yields):
        missing = t.nothing(operand)
        t.give(out, missing if missing is not None else t.value(operand))


def _choose(t: Translator, op: Operator, chooser: torch.Tensor, tests: Sequence[Test], last: Block) -> None:
    """``tests``: Blocks, each with the value of the chooser for which it runs, None for a flag."""
    kept = [place for place, out in enumerate(op.outputs) if t.kept(out)]
    captured = t.captured(op.blocks)
    before = t.failures_so_far()
    failed = number(0, "int") if t.failed is None else t.failed
    made = _nested(op, captured, kept, tests, last)(chooser, failed, *captured.operands)
    t.take_failed(made[0], before)
    for place, value in zip(kept, made[1:]):
        t.give(op.outputs[place], value)


def _nested(op: Operator, captured: Captured, kept: Sequence[int], tests: Sequence[Test], last: Block,
            ) -> Callable[..., Tensors]:  # fmt: skip
    """A function of the chooser, of whether the run has failed, and of what is captured."""
    if not tests:
        return lambda chooser, failed, *operands: _run(op, captured, kept, last, failed, operands)
    (wanted, block), *rest = tests
    orelse = _nested(op, captured, kept, rest, last)

    def then(chooser: torch.Tensor, failed: torch.Tensor, *operands: Any) -> Tensors:
        return _run(op, captured, kept, block, failed, operands)

    def choose(chooser: torch.Tensor, failed: torch.Tensor, *operands: Any) -> Tensors:
        cond = torch.ops.higher_order.cond
        if wanted is None:  # the Blocks may read the flag as well, and PyTorch takes no operand twice
            found: Tensors = cond(chooser, lambda *of: then(chooser, *of), lambda *of: orelse(chooser, *of),
                                  (failed, *operands))  # fmt: skip
        else:
            found = cond(aten.eq.Scalar(chooser, wanted), then, orelse, (chooser, failed, *operands))
        return found

    return choose


def _run(op: Operator, captured: Captured, kept: Sequence[int], block: Block, failed: torch.Tensor,
         operands: Sequence[Any]) -> Tensors:  # fmt: skip
    inner = captured.inner(operands, failed)
    inner.block(block)
    values = [inner.yielded(block.yields[place], op.outputs[place].type) for place in kept]
    assert inner.failed is not None
    return (aten.clone.default(inner.failed), *values)


__all__ = ["emit_cond", "emit_switch"]
