"""Cross entropy and the negative log likelihood of classes: one pass over rows.

    aten.nll_loss_forward.default(%logs, %classes, None, 1, -100)      ->      for (i ...) sum -= logs[i][classes[i]];

A class that there is not ends the attempt: Python raises. Sums are added in double.
"""

from __future__ import annotations

import torch

from runtime.ir import Operand, Operator
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS, suffix
from runtime.native.scatter import zero
from runtime.native.values import Number, Tensor, Unsupported
from runtime.ops import aten

NONE, MEAN, SUM = range(3)


def _given(low: Lowering, scores: Operand, classes: Operand, weight: Operand, ignored: Operand
           ) -> tuple[Tensor, Tensor, Number]:  # fmt: skip
    """Rows of scores, a class for each, and the class that does not count."""
    x, target = low.dense_operand(scores), low.dense_operand(classes)
    if weight is not None or x.rank != 2 or x.dtype not in FLOATS or target.dtype is not torch.int64 or (
            target.rank != 1):  # fmt: skip
        raise Unsupported("these scores")
    low.flush()
    if x.dims[0] != target.dims[0]:
        low.w.bail(f"{x.dims[0]} != {target.dims[0]}")
    return x, target, low.integer(ignored)


def _class(low: Lowering, x: Tensor, target: Tensor, ignored: Number) -> None:
    """The class of a row, as ``t``; rows that do not count are passed over."""
    low.w.line(f"const i64 t = p{target.n}[i];")
    low.w.line(f"if (t == {ignored.text}) continue;")
    low.w.bail(f"t < 0 || t >= {x.dims[1]}")


def _number(low: Lowering, x: Tensor, text: str) -> Tensor:
    made = low.blank(x.dtype, ())
    made.reg = low.w.local(made.ctype, "r")
    low.w.line(f"{made.reg} = ({made.ctype})({text});")
    return made


def emit_nll(low: Lowering, op: Operator) -> None:
    """``nll_loss_forward``: the mean or sum, and how many rows count."""
    x, target, ignored = _given(low, op.args[0], op.args[1], op.args[2], op.args[4])
    reduction = op.args[3]
    if type(reduction) is not int or reduction not in (MEAN, SUM):
        raise Unsupported("a reduction")
    w = low.w
    total, count = w.local("double", "v"), w.local("i64", "n")
    w.line(f"{total} = 0; {count} = 0;")
    with w.block(f"for (i64 i = 0; i < {x.dims[0]}; i++)"):
        _class(low, x, target, ignored)
        w.line(f"{total} -= p{x.n}[i * {x.dims[1]} + t]; {count}++;")
    results = (_number(low, x, f"{total} / {count}" if reduction == MEAN else total), _number(low, x, count))
    unread = set(low.live.unread[id(op)])
    for out, made in zip(op.outputs, results):
        if out not in unread:
            low.give(out, made)


def emit_nll_backward(low: Lowering, op: Operator) -> None:
    """The gradient of the mean or sum: zeros but for each row's class."""
    x, target, ignored = _given(low, op.args[1], op.args[2], op.args[3], op.args[5])
    grad, count = low.memory(low.tensor(op.args[0])), low.memory(low.tensor(op.args[6]))
    reduction = op.args[4]
    if type(reduction) is not int or reduction not in (MEAN, SUM) or grad.rank or count.rank or (
            {grad.dtype, count.dtype} != {x.dtype}):  # fmt: skip
        raise Unsupported("a reduction")
    low.flush()
    made = low.fresh(x.dtype, x.dims)
    zero(low, made)
    with low.w.block(""):
        divisor = f" / p{count.n}[0]" if reduction == MEAN else ""
        low.w.line(f"const {x.ctype} g = -p{grad.n}[0]{divisor};")
        with low.w.block(f"for (i64 i = 0; i < {x.dims[0]}; i++)"):
            _class(low, x, target, ignored)
            low.w.line(f"p{made.n}[i * {x.dims[1]} + t] = g;")
    low.give(op.outputs[0], made)


def emit_cross_entropy(low: Lowering, op: Operator) -> None:
    """``cross_entropy_loss`` of classes, without the logarithms of all probabilities."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    x, target, ignored = _given(low, call["self"], call["target"], call.get("weight"), call.get("ignore_index", -100))
    reduction, smoothing = call.get("reduction", MEAN), call.get("label_smoothing", 0.0)
    if type(reduction) is not int or reduction not in (NONE, MEAN, SUM) or smoothing != 0.0:
        raise Unsupported("a reduction")
    w, n, s = low.w, x.dims[1], suffix(x.dtype)
    each = low.fresh(x.dtype, x.dims[:1]) if reduction == NONE else None
    total, count = w.local("double", "v"), w.local("i64", "n")
    w.line(f"{total} = 0; {count} = 0;")
    with w.block(f"for (i64 i = 0; i < {x.dims[0]}; i++)"):
        if each is not None:
            w.line(f"p{each.n}[i] = 0;")
        _class(low, x, target, ignored)
        w.line(f"const {x.ctype} *x = p{x.n} + i * {n}; {x.ctype} top = -INFINITY; double sum = 0;")
        low.row.fold(low, n, [("max", "top")], "top = x[j] > top ? x[j] : top;")
        low.row.fold(low, n, [("+", "sum")], f"sum += m_exp_{s}(x[j] - top);")
        w.line(f"const {x.ctype} loss = ({x.ctype})log(sum) - (x[t] - top);")
        w.line(f"p{each.n}[i] = loss;" if each is not None else f"{total} += loss; {count}++;")
    if each is not None:
        low.give(op.outputs[0], each)
        return
    low.give(op.outputs[0], _number(low, x, f"{total} / {count}" if reduction == MEAN else total))
