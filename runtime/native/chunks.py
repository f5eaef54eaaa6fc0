"""Products of rows that a loop takes one after another: some rows at once, ahead of the loop.

    for (...) { a = x[t] @ w + b; ... }      ->      for (...) { if (t is not in some) some = x[t : t + 16] @ w + b;
                                                                a = some[t - first]; ... }

Products of few rows take as long as reading the matrix. The first time there are four rows, then eight, then sixteen: a
loop that ends early has computed few in vain. Memory that somebody still refers to is not written again. Where a row
of the loop is many rows of the product, there are fewer at once, or each is computed when its turn comes: then reading
the matrix is not what takes the time.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.ir import Block, Operand, Operator, Variable
from runtime.native.lowering import Loop, Lowering, Rows
from runtime.native.values import Expr, Tensor
from runtime.ops import scan
from runtime.ops.escaping import escapes

MOST = 16
"""Rows of the loop in one product."""
FIRST = 2
"""What is doubled for the first product."""
ROWS = 64
"""Rows of the product, beyond which more would gain nothing."""
ROOM = 1 << 18
"""Bytes of their results: C's own memory, never PyTorch's."""

Gemm = Callable[[Lowering, Tensor, Tensor, Tensor, Tensor | None], None]
"""What writes ``out = bias + a @ b``, given the two and the bias."""


def rows_of_while(op: Operator) -> dict[Variable, Rows]:
    """What a loop takes of tensors by a number that goes up or down by one."""
    body = op.blocks[1]
    makers = {out: one for one in body.ops for out in one.outputs}
    steps = {arg: step for arg, value in zip(body.args, body.yields) if (step := _step(arg, value, makers))}
    return {
        one.outputs[0]: Rows(one.args[0], one.args[2], steps[one.args[2]]) for one in body.ops
        if one.name == "aten.select.int" and type(one.args[1]) is int and one.args[1] == 0
        and isinstance(one.args[2], Variable) and one.args[2] in steps
    }  # fmt: skip


def _step(arg: Variable, value: Operand, makers: dict[Variable, Operator]) -> int:
    made = makers.get(value) if isinstance(value, Variable) else None
    if made is None or made.name not in ("scalar.add", "scalar.sub"):
        return 0
    a, b = made.args
    if made.name == "scalar.add" and b is arg:
        a, b = b, a
    if a is not arg or type(b) is not int or abs(b) != 1:
        return 0
    return b if made.name == "scalar.add" else -b


def rows_of_scan(op: Operator) -> dict[Variable, Rows]:
    """The slices of a scan."""
    body: Block = op.blocks[0]
    index, step = body.args[0], -1 if op.attrs.get("reverse") else 1
    return {arg: Rows(whole, index, step) for arg, whole in zip(body.args[1 + scan.carried(op) :], scan.columns(op))}


def product(low: Lowering, op: Operator, row: Operand, weight: Tensor, bias: Tensor | None, gemm: Gemm
            ) -> Tensor | None:  # fmt: skip
    """``row @ weight + bias`` of a row that a loop takes, with the rows that come next; None where it is not so."""
    loop = low.loops[-1] if low.loops else None
    if loop is None or not isinstance(row, Variable) or row not in loop.rows or low.around[-1] is not loop.body.ops:
        return None
    rows = loop.rows[row]
    x, one, index = low.value(rows.whole), low.tensor(row), low.integer(rows.index)
    if not isinstance(x, Tensor) or x.strides is not None or not x.straight or x.dtype is not one.dtype:
        return None
    fixed = [x, weight.origin or weight, *([] if bias is None else [bias])]
    if not all(_stays(loop, t) for t in fixed) or one.rank < 1 or one.strides is not None or (
            not one.straight or escapes(op.outputs, loop.body)):  # fmt: skip
        return None
    w = low.w
    count, width, columns = w.product(one.dims[:-1]), one.dims[-1], weight.dims[1]
    size = w.product((count, columns))
    if isinstance(count, int) and ROWS // max(count, 1) < 2:
        return None
    most = None
    if isinstance(size, int) and isinstance(count, int):
        most = min(MOST, ROWS // max(count, 1), ROOM // max(size * one.dtype.itemsize, 1))
        if most < 2:
            return None
    made = low.blank(one.dtype, (*one.dims[:-1], columns))
    memory = w.local("buf *", "b")
    loop.kept.append(memory)
    at, first, end, some, m = (w.local("i64", "y") for _ in range(5))
    limit: Expr = most if most is not None else w.local("i64", "y")
    if most is None:
        w.line(f"{limit} = {MOST};")
        for room, each in ((ROWS, count), (ROOM // one.dtype.itemsize, size)):
            w.line(f"if ({limit} * {each} > {room}) {limit} = {room} / {each};")
        w.line(f"if ({limit} < 1) {limit} = 1;")
    w.line(f"{at} = {index.text}; {at} += {at} < 0 ? {x.dims[0]} : 0;")
    with w.block(f"if (!{memory} || {at} < {first} || {at} >= {end})"):
        w.line(f"{some} = 2 * ({memory} ? {some} : {FIRST}); {some} = {some} < {limit} ? {some} : {limit};")
        if rows.step > 0:
            w.line(f"{first} = {at}; {end} = {at} + {some} < {x.dims[0]} ? {at} + {some} : {x.dims[0]};")
        else:
            w.line(f"{end} = {at} + 1; {first} = {end} > {some} ? {end} - {some} : 0;")
        w.line(f"if ({memory} && {memory}->rc != 1) {{ d2s_put(c, {memory}); {memory} = 0; }}")
        w.line(f"if (!{memory} && !({memory} = d2s_new(c, {limit} * {size} * {one.dtype.itemsize}))) goto bail;")
        w.line(f"{m} = ({end} - {first}) * {count};")
        w.bail(f"{m} > 0x7fffffff")
        given, result = low.blank(one.dtype, (m, width)), low.blank(one.dtype, (m, columns))
        w.line(f"p{given.n} = p{x.n} + {first} * {w.product((count, width))};")
        w.line(f"p{result.n} = ({result.ctype} *){memory}->data;")
        gemm(low, result, given, weight, bias)
    w.line(f"b{made.n} = {memory}; {memory}->rc++; o{made.n} = ++objects;")
    w.line(f"p{made.n} = ({made.ctype} *){memory}->data + ({at} - {first}) * {size};")
    return made


def _stays(loop: Loop, t: Tensor) -> bool:
    return not t.mine or t.n <= loop.start
