"""``while_loop`` and ``scan`` as PyTorch's ``while_loop``: one body, however many iterations a run does.

    %n, %h = while_loop(0, %x) { test } { body }    ->    while_loop(going, body and test, (test(0, x), failed, 0, x))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.export.shared import Nothing
from runtime.export.torch_export.translator import Captured, Translator, aten
from runtime.export.torch_export.values import SYMBOLS, Refused, number
from runtime.ir import ArrayType, Operand, Operator, TensorType, Variable
from runtime.ops import scan

Tensors = tuple[torch.Tensor, ...]
_KEPT_NOT = "a value of a kind that only the run knows, such as None or text, in a loop"


def emit_while(t: Translator, op: Operator) -> None:
    """``while_loop``: the test is written twice, before the loop and at the end of its body."""
    test, body = op.blocks
    kept = [place for place, arg in enumerate(body.args) if t.kept(arg)]
    types = [body.args[place].type for place in kept]
    captured = t.captured(op.blocks)
    before = t.failures_so_far()
    begin = [t.yielded(op.args[place], type_) for place, type_ in zip(kept, types)]
    failed = number(0, "int") if t.failed is None else t.failed
    limit = op.attrs.get("max_iterations")
    first = _inside(captured, captured.operands, failed, test.args, kept, begin)
    first.block(test)
    more = number(first.flag(test.yields[0]), "bool")

    counts = () if limit is None else (number(0, "int"),)

    def going(more: torch.Tensor, failed: torch.Tensor, *rest: Any) -> torch.Tensor:
        found = _going_on(more, failed)
        return found if limit is None else aten.logical_and.default(found, aten.lt.Scalar(rest[0], limit))

    def step(more: torch.Tensor, failed: torch.Tensor, *rest: Any) -> Tensors:
        count, carried = rest[: len(counts)], rest[len(counts) : len(counts) + len(kept)]
        operands = rest[len(counts) + len(kept) :]
        inner = _inside(captured, operands, failed, body.args, kept, carried)
        inner.block(body)
        left = [inner.yielded(body.yields[place], type_) for place, type_ in zip(kept, types)]
        _require_sizes(t, carried, left, [body.args[place] for place in kept])
        for arg in test.args:
            inner.give(arg, Nothing(_KEPT_NOT))
        for place, value in zip(kept, left):
            inner.give(test.args[place], value)
        inner.block(test)
        again = number(inner.flag(test.yields[0]), "bool")
        assert inner.failed is not None
        further = [aten.add.Scalar(one, 1) for one in count]
        return (_going_on(again, inner.failed), aten.clone.default(inner.failed), *further, *_apart(left, inner.failed))

    assert first.failed is not None
    begin = _apart(begin, first.failed)
    start = (_going_on(more, first.failed), aten.clone.default(first.failed), *counts, *begin)
    more, failed, *made = torch.ops.higher_order.while_loop(going, step, start, tuple(captured.operands))
    made = made[len(counts) :]
    t.take_failed(failed, before)
    if limit is not None:
        done = limit + op.attrs.get("already", 0)
        t.fail_if(more, f"RuntimeError: the loop has not ended after {done} iterations")
    for out in op.outputs:
        t.give(out, Nothing(_KEPT_NOT))
    for place, value in zip(kept, made):
        t.give(op.outputs[place], value)


def _going_on(more: torch.Tensor, failed: torch.Tensor) -> torch.Tensor:
    """Whether a loop goes on. It is computed, for memory of its own: Inductor drops clones, and moves a tensor once."""
    found: torch.Tensor = aten.logical_and.default(more, aten.eq.Scalar(failed, 0))
    return found


def _apart(values: Sequence[torch.Tensor], failed: torch.Tensor) -> list[torch.Tensor]:
    """Values of which no two are one tensor, whatever Inductor makes of clones: all are computed."""
    holds = aten.eq.Scalar(failed, 0)
    return [aten.where.self(holds, one, aten.zeros_like.default(one)) for one in values]


def _inside(captured: Captured, operands: Sequence[Any], failed: torch.Tensor, args: Sequence[Variable],
            kept: Sequence[int], values: Sequence[torch.Tensor]) -> Translator:  # fmt: skip
    inner = captured.inner(operands, failed)
    for arg in args:
        inner.give(arg, Nothing(_KEPT_NOT))
    for place, value in zip(kept, values):
        inner.give(args[place], value)
    return inner


def _require_sizes(t: Translator, carried: Sequence[torch.Tensor], left: Sequence[torch.Tensor],
                   variables: Sequence[Variable]) -> None:  # fmt: skip
    for before, after, var in zip(carried, left, variables):
        same = before.dim() == after.dim() and all(map(_same, before.shape, after.shape))
        if not same:
            said = f"'{var.hint}'" if var.hint else "a value"
            raise Refused(f"{said} whose sizes change from one iteration to the next")


def _same(a: Any, b: Any) -> bool:
    return str(a) == str(b) if isinstance(a, SYMBOLS) or isinstance(b, SYMBOLS) else a == b


def emit_scan(t: Translator, op: Operator) -> None:
    """``scan``: a loop that carries the rows it has made, in tensors of the whole length."""
    (body,) = op.blocks
    count, reverse = scan.carried(op), bool(op.attrs.get("reverse"))
    carried = list(range(count))
    for out in op.outputs[count:]:
        if isinstance(out.type, ArrayType):
            raise Refused("a list that a loop makes")
    kept = [place for place in carried if t.kept(body.args[1 + place])]
    types = [body.args[1 + place].type for place in kept]
    captured = t.captured(op.blocks)
    columns = [_column(t, one) for one in scan.columns(op)]
    before = t.failures_so_far()
    failed = number(0, "int") if t.failed is None else t.failed
    length = _clamped(t, op.args[0])
    begin = [t.yielded(op.args[1 + place], type_) for place, type_ in zip(kept, types)]
    rows = [_rows(t, out, length) for out in op.outputs[count:]]
    many = len(kept)
    bound = number(length, "int")

    def going(at: torch.Tensor, failed: torch.Tensor, *rest: Any) -> torch.Tensor:
        return aten.logical_and.default(aten.lt.Tensor(at, rest[many + len(rows)]), aten.eq.Scalar(failed, 0))

    def step(at: torch.Tensor, failed: torch.Tensor, *rest: Any) -> Tensors:
        values, made = rest[:many], rest[many : many + len(rows)]
        bound, *operands = rest[many + len(rows) :]
        slices, operands = operands[: len(columns)], operands[len(columns) :]
        inner = captured.inner(operands, failed)
        index = aten.sub.Tensor(aten.sub.Tensor(bound, at), number(1, "int")) if reverse else aten.clone.default(at)
        inner.give(body.args[0], index)
        for arg in body.args[1 : 1 + count]:
            inner.give(arg, Nothing(_KEPT_NOT))
        for place, value in zip(kept, values):
            inner.give(body.args[1 + place], value)
        where = aten.reshape.default(index, [1])
        for column, arg in zip(slices, body.args[1 + count :]):
            inner.give(arg, aten.squeeze.dim(aten.index_select.default(column, 0, where), 0))
        inner.block(body)
        left = [inner.yielded(body.yields[place], type_) for place, type_ in zip(kept, types)]
        _require_sizes(t, values, left, [body.args[1 + place] for place in kept])
        grown = []
        for whole, operand in zip(made, body.yields[count:]):
            row = inner.tensor(operand)
            if row.dim() != whole.dim() - 1 or not all(map(_same, row.shape, whole.shape[1:])):
                raise Refused("rows whose sizes only the run knows")
            grown.append(aten.index_copy.default(whole, 0, where, aten.unsqueeze.default(row, 0)))
        assert inner.failed is not None
        return (aten.add.Scalar(at, 1), aten.clone.default(inner.failed), *left, *grown)

    operands = (bound, *columns, *captured.operands)
    _, failed, *made = torch.ops.higher_order.while_loop(
        going, step, (number(0, "int"), aten.clone.default(failed), *begin, *rows), operands)  # fmt: skip
    t.take_failed(failed, before)
    for out in op.outputs[:count]:
        t.give(out, Nothing(_KEPT_NOT))
    for place, value in zip([*kept, *range(count, len(op.outputs))], made):
        t.give(op.outputs[place], value)


def _column(t: Translator, operand: Operand) -> torch.Tensor:
    found = t.value(operand)
    if isinstance(found, torch.Tensor):
        return found
    if isinstance(found, list) and found and all(isinstance(one, torch.Tensor) for one in found):
        if len({(one.dtype, tuple(map(str, one.shape))) for one in found}) == 1:
            stacked: torch.Tensor = aten.stack.default(found)
            return stacked
    raise Refused("a loop over a list whose items differ in kind")


def _clamped(t: Translator, operand: Operand) -> Any:
    """A length as a size: none is below 0."""
    found = t.argument(operand)
    if isinstance(found, SYMBOLS):
        return torch.sym_max(found, 0)
    return max(found, 0)


def _rows(t: Translator, out: Variable, length: Any) -> torch.Tensor:
    type_ = out.type
    if not isinstance(type_, TensorType) or type_.shape is None or type_.dtype is None:
        raise Refused("rows of which only the run knows how many dimensions they have")
    sizes = [t.symbols.get(dim) if isinstance(dim, str) else dim for dim in type_.shape[1:]]
    if None in sizes:
        raise Refused("rows whose sizes only the run knows")
    made: torch.Tensor = aten.full.default([length, *sizes], 0, dtype=type_.dtype)
    return made


__all__ = ["emit_scan", "emit_while"]
