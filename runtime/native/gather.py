"""Rows by their numbers, their gradients, and the number of the largest element of a row.

    aten.index.Tensor(%table, [%words])      ->      for (i ...) memcpy(y + i * 128, table + words[i] * 128, 512);

The gradient of rows is zero elsewhere: where a loop adds it to a total, only its rows are. A number that is out of
range ends the attempt: Python raises.
"""

from __future__ import annotations

import torch

from runtime.ir import Operand, Operator
from runtime.native.lowering import Lowering, Part
from runtime.native.pointwise import FLOATS
from runtime.native.scatter import add_rows, is_only_added, row_number, zero
from runtime.native.values import Tensor, Unsupported
from runtime.native.views import axis
from runtime.ops import aten


def _numbers(low: Lowering, operand: Operand) -> Tensor:
    found = low.dense_operand(operand)
    if found.dtype is not torch.int64:
        raise Unsupported("numbers of another dtype")
    return found


def _each(low: Lowering, indices: Operand) -> tuple[Tensor, ...]:
    """The numbers of rows in the first dimensions, of the same sizes for each."""
    if not isinstance(indices, (list, tuple)) or not indices or None in indices:
        raise Unsupported("other dimensions than the first")
    found = tuple(_numbers(low, one) for one in indices)
    for other in found[1:]:
        if other.rank != found[0].rank:
            raise Unsupported("numbers of other sizes")
        for a, b in zip(found[0].dims, other.dims):
            if a != b and isinstance(a, int) and isinstance(b, int):
                raise Unsupported("numbers of other sizes")
            if a != b:
                low.w.bail(f"{a} != {b}")
    return found


def _taken(low: Lowering, op: Operator, table: Tensor, numbers: tuple[Tensor, ...], negative: bool) -> None:
    if table.rank < len(numbers):
        raise Unsupported("a number")
    low.flush()
    made = low.fresh(table.dtype, (*numbers[0].dims, *table.dims[len(numbers) :]))
    width = low.w.product(table.dims[len(numbers) :])
    with low.w.block(f"for (i64 i = 0; i < {low.w.product(numbers[0].dims)}; i++)"):
        row_number(low, numbers, table.dims[: len(numbers)], negative)
        low.w.line(f"d2s_copy(p{made.n} + i * {width}, p{table.n} + k * {width}, {width} * sizeof({made.ctype}));")
    low.give(op.outputs[0], made)


def emit_index(low: Lowering, op: Operator) -> None:
    """``table[numbers]``, ``table[rows, columns]``."""
    _taken(low, op, low.dense_operand(op.args[0], may_copy=False), _each(low, op.args[1]), True)


def emit_embedding(low: Lowering, op: Operator) -> None:
    """``embedding``."""
    table = low.dense_operand(op.args[0], may_copy=False)
    if table.rank != 2:
        raise Unsupported("a rank")
    _taken(low, op, table, (_numbers(low, op.args[1]),), False)


def _give(low: Lowering, op: Operator, part: Part) -> None:
    """What is zero but for some rows; not made where all that happens is that they are added to a total."""
    numbers, grad = part.rows, part.grad
    if len(grad.dims) != numbers[0].rank + len(part.dims) - len(numbers):
        raise Unsupported("sizes")
    for own, other in zip(grad.dims, (*numbers[0].dims, *part.dims[len(numbers) :])):
        if isinstance(own, int) and isinstance(other, int) and own != other:
            raise Unsupported("sizes")
        if own != other:
            low.w.bail(f"{own} != {other}")
    low.flush()
    if is_only_added(low, op):
        kept = tuple(low.same(one) for one in numbers)
        low.parts[op.outputs[0]] = Part(low.same(grad), part.dims, part.of, kept, part.padding)
        return
    made = low.fresh(grad.dtype, part.dims)
    zero(low, made)
    add_rows(low, made, part)
    low.give(op.outputs[0], made)


def _no_view(whole: Tensor) -> Tensor:
    raise Unsupported("rows")


def emit_index_put(low: Lowering, op: Operator) -> None:
    """``zeros[numbers] += rows``."""
    given = op.args[0]
    siblings = low.around[-1] if low.around else low.ops
    made_by = next((other for other in siblings if given in other.outputs), None)
    zeros = made_by is not None and made_by.name in ("aten.new_zeros.default", "aten.zeros.default")
    if not zeros or len(op.args) < 4 or op.args[3] is not True:
        raise Unsupported("what is not zero")
    grad, numbers = low.dense_operand(op.args[2]), _each(low, op.args[1])
    like = low.tensor(given)
    if like.rank < len(numbers) or like.dtype != grad.dtype or grad.dtype not in FLOATS:
        raise Unsupported("a rank")
    _give(low, op, Part(grad, like.dims, _no_view, numbers))


def emit_embedding_backward(low: Lowering, op: Operator) -> None:
    """The gradient of ``embedding``, its padding left out."""
    grad, numbers = low.dense_operand(op.args[0]), (_numbers(low, op.args[1]),)
    count, padding = op.args[2], op.args[3]
    if type(count) is not int or type(padding) is not int or op.args[4] is not False or grad.dtype not in FLOATS or (
            not grad.rank):  # fmt: skip
        raise Unsupported("this embedding")
    _give(low, op, Part(grad, (count, grad.dims[-1]), _no_view, numbers, padding))


def emit_argmax(low: Lowering, op: Operator) -> None:
    """The number of the first of the largest elements of each row; nan counts as the largest."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    x = low.dense_operand(op.args[0])
    dim = call.get("dim")
    if x.dtype not in FLOATS or not x.rank or (dim is None and x.rank > 1) or axis(x, dim or 0 if x.rank == 1 else dim
                                                                                ) != x.rank - 1:  # fmt: skip
        raise Unsupported("a dimension")
    low.flush()
    w, n = low.w, x.dims[-1]
    made = low.fresh(torch.int64, (*x.dims[:-1], 1) if call.get("keepdim") else x.dims[:-1])
    w.bail(f"!({n})")
    with w.block(f"for (i64 i = 0; i < {w.product(x.dims[:-1])}; i++)"):
        w.line(f"const {x.ctype} *x = p{x.n} + i * {n}; {x.ctype} top = x[0]; int bad = 0; i64 at = 0;")
        low.row.fold(low, n, [("max", "top"), ("|", "bad")], "top = x[j] > top ? x[j] : top; bad |= x[j] != x[j];")
        w.line("if (bad) while (x[at] == x[at]) at++;")
        w.line("else while (x[at] != top) at++;")
        w.line(f"p{made.n}[i] = at;")
    low.give(op.outputs[0], made)
