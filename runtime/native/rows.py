"""Operators on rows, each of which stays in the fastest memory from its first to its last use: softmax and norms.

    aten._softmax.default(%x, -1, False)      ->      for (i ...) { largest of x; sum of exp(x - largest); y }

A row is the last dimensions of dense memory. How it is gone over, and what sums are added in, ``Lowering.row`` and
``Lowering.target`` say.
"""

from __future__ import annotations

import torch

from runtime.ir import Operand, Operator
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS, declared
from runtime.native.target import computed
from runtime.native.values import HALVES, Expr, Tensor, Unsupported
from runtime.native.views import axis
from runtime.ops import aten


def _given(low: Lowering, *operands: Operand) -> list[Tensor]:
    """Tensors of one dtype of floats in dense memory: copies where they lie otherwise, as PyTorch makes them."""
    found = low.row.given(low, [low.tensor(one) for one in operands])
    if any(one.dtype != found[0].dtype for one in found) or (
            found[0].dtype not in FLOATS and not (low.target.halves_in_rows and found[0].dtype in HALVES)):  # fmt: skip
        raise Unsupported("these tensors")
    return [low.copied(one) for one in found]


def _ending(x: Tensor) -> str:
    """The end of the name of the functions that an element is computed with."""
    return "d" if x.dtype is torch.float64 else "f"


def _alike(low: Lowering, a: Tensor, b: Tensor) -> None:
    """Errors raised: Unsupported for sizes that surely differ; others that differ end the attempt."""
    if a.rank != b.rank:
        raise Unsupported("sizes")
    for own, other in zip(a.dims, b.dims):
        if isinstance(own, int) and isinstance(other, int):
            if own != other:
                raise Unsupported("sizes")
        elif own != other:
            low.w.bail(f"{own} != {other}")


def emit_softmax(low: Lowering, op: Operator) -> None:
    """``softmax`` and ``log_softmax`` along the last dimension."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    (x,) = _given(low, op.args[0])
    if call.get("half_to_float") or call.get("dtype") not in (None, x.dtype) or not x.rank or (
            axis(x, call["dim"]) != x.rank - 1):  # fmt: skip
        raise Unsupported("this softmax")
    made = low.fresh(x.dtype, x.dims)
    n, s, t, wide = x.dims[-1], _ending(x), computed(x), low.target.sums(x.dtype)
    with low.row.each(low, low.w.product(x.dims[:-1]), n, ("x", x), ("y", made)):
        low.w.line(f"{t} top = -INFINITY; {wide} sum = 0;")
        low.row.fold(low, n, [("max", "top")], "top = x[j] > top ? x[j] : top;")
        if "log" in op.name:
            low.row.fold(low, n, [("+", "sum")], f"sum += m_exp_{s}(x[j] - top);")
            low.w.line(f"const {t} rest = ({t})log(sum);")
            low.row.map(low, n, "y[j] = x[j] - top - rest;")
        elif not low.target.rereads_rows:
            low.row.fold(low, n, [("+", "sum")], f"sum += m_exp_{s}(x[j] - top);")
            low.row.map(low, n, f"y[j] = m_exp_{s}(x[j] - top) / sum;")
        else:
            low.row.fold(low, n, [("+", "sum")], f"const {t} e = m_exp_{s}(x[j] - top); y[j] = e; sum += e;")
            low.w.line(f"const {t} part = ({t})(1 / sum);")
            low.row.map(low, n, "y[j] = y[j] * part;")
    low.give(op.outputs[0], made)


def emit_softmax_backward(low: Lowering, op: Operator) -> None:
    """The gradients of both, from their results."""
    g, y = _given(low, *op.args[:2])
    _alike(low, g, y)
    if op.args[3] != y.dtype or not y.rank or axis(y, op.args[2]) != y.rank - 1:
        raise Unsupported("this softmax")
    made = low.fresh(y.dtype, y.dims)
    n, s, t, wide = y.dims[-1], _ending(y), computed(y), low.target.sums(y.dtype)
    with low.row.each(low, low.w.product(y.dims[:-1]), n, ("g", g), ("y", y), ("d", made)):
        low.w.line(f"{wide} sum = 0;")
        if "log" in op.name:
            low.row.fold(low, n, [("+", "sum")], "sum += g[j];")
            low.w.line(f"const {t} total = ({t})sum;")
            low.row.map(low, n, f"d[j] = g[j] - m_exp_{s}(y[j]) * total;")
        else:
            low.row.fold(low, n, [("+", "sum")], "sum += g[j] * y[j];")
            low.w.line(f"const {t} total = ({t})sum;")
            low.row.map(low, n, "d[j] = y[j] * (g[j] - total);")
    low.give(op.outputs[0], made)


def _row_of(low: Lowering, x: Tensor, shape: Operand) -> tuple[int, Expr, Expr]:
    """How many dimensions stay, how many rows there are, and how long one is."""
    sizes = low.sizes(shape)
    stay = x.rank - len(sizes)
    if stay < 0:
        raise Unsupported("sizes")
    for own, other in zip(x.dims[stay:], sizes):
        if own != other:
            if isinstance(own, int) and isinstance(other, int):
                raise Unsupported("sizes")
            low.w.bail(f"{own} != {other}")
    return stay, low.w.product(x.dims[:stay]), low.w.product(x.dims[stay:])


def _weights(low: Lowering, x: Tensor, stay: int, *operands: Operand) -> list[Tensor | None]:
    found: list[Tensor | None] = []
    for operand in operands:
        if operand is None:
            found.append(None)
            continue
        (weight,) = _given(low, operand)
        if weight.dtype != x.dtype:
            raise Unsupported("these dtypes")
        _alike(low, Tensor(0, x.dtype, x.dims[stay:]), weight)
        found.append(weight)
    return found


def emit_layer_norm(low: Lowering, op: Operator) -> None:
    """``layer_norm``, and with its means and inverse deviations for a backward half."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    (x,) = _given(low, op.args[0])
    stay, rows, n = _row_of(low, x, call["normalized_shape"])
    weight, bias = _weights(low, x, stay, call.get("weight"), call.get("bias"))
    if not isinstance(call["eps"], float):
        raise Unsupported("eps")
    eps = low.number(call["eps"]).text
    t, wide = computed(x), low.target.sums(x.dtype)
    made = low.fresh(x.dtype, x.dims)
    facts = [low.fresh(declared(op, place) if x.dtype in HALVES else x.dtype, (*x.dims[:stay], *[1] * (x.rank - stay)))
             for place in range(1, len(op.outputs))]  # fmt: skip
    with low.row.each(low, rows, n, ("x", x), ("y", made)):
        w = low.w
        w.line(f"{wide} sum = 0, squares = 0;")
        low.row.fold(low, n, [("+", "sum")], "sum += x[j];")
        w.line(f"const {wide} mean = sum / {n};")
        low.row.fold(low, n, [("+", "squares")], f"const {wide} v = x[j] - mean; squares += v * v;")
        w.line(f"const {wide} inverse = 1 / sqrt(squares / {n} + ({wide}){eps});")
        w.line(f"const {t} a = ({t})inverse, m = ({t})mean;")
        factor = "" if weight is None else f" * p{weight.n}[j]"
        addend = "" if bias is None else f" + p{bias.n}[j]"
        low.row.map(low, n, f"y[j] = (x[j] - m) * a{factor}{addend};")
        for one, text in zip(facts, ("mean", "inverse")):
            low.row.once(low, f"p{one.n}[i] = ({computed(one)}){text};")
    unread = set(low.live.unread[id(op)])
    for out, value in zip(op.outputs, [made, *facts]):
        if out in unread:
            low.release(value)
        else:
            low.give(out, value)


def emit_layer_norm_backward(low: Lowering, op: Operator) -> None:
    """The gradients of the input, the weight and the bias; nothing reads those that were not asked for."""
    g, x = _given(low, op.args[0], op.args[1])
    mean, inverse = _given(low, op.args[3], op.args[4])
    _alike(low, g, x)
    if mean.dtype != x.dtype and not (x.dtype in HALVES and mean.dtype is torch.float32):
        raise Unsupported("these means")
    stay, rows, n = _row_of(low, x, op.args[2])
    (weight,) = _weights(low, x, stay, op.args[5])
    mask = op.args[7]
    if not isinstance(mask, (list, tuple)) or any(type(one) is not bool for one in mask):
        raise Unsupported("a mask")
    for one in (mean, inverse):
        low.w.bail(f"{low.w.product(one.dims)} != {rows}")
    t, wide = computed(x), low.target.sums(x.dtype)
    unread = set(low.live.unread[id(op)])
    wanted = [asked and out not in unread for asked, out in zip(mask, op.outputs)]
    made = [low.fresh(x.dtype, x.dims if not place else x.dims[stay:]) if one else None
            for place, one in enumerate(wanted)]  # fmt: skip
    factor = "" if weight is None else f" * p{weight.n}[j]"
    pointers = [("g", g), ("x", x)] + ([("d", made[0])] if made[0] is not None else [])
    normal = "((x[j] - m) * a)"
    head = f"const {t} a = p{inverse.n}[i], m = p{mean.n}[i];"
    columns = low.row.columns(low, rows, n, [("g", g), ("x", x)], head,
                              [(one, step) for one, step in zip(made[1:], (f"g[j] * {normal}", "g[j]")) if one])
    if made[0] is not None or columns.inside:
        with low.row.each(low, rows, n, *pointers, apart=not columns.inside):
            low.w.line(head)
            if made[0] is not None:
                low.w.line(f"{wide} first = 0, second = 0;")
                low.row.fold(low, n, [("+", "first"), ("+", "second")],
                             f"const {t} v = g[j]{factor}; first += v; second += v * {normal};")  # fmt: skip
                low.w.line(f"const {t} u = ({t})(first / {n}), s = ({t})(second / {n});")
                low.row.map(low, n, f"d[j] = a * (g[j]{factor} - u - (x[j] - m) * a * s);")
            for step in columns.inside:
                low.row.map(low, n, step)
    columns.finish()
    for out, value in zip(op.outputs, made):
        if out not in unread:
            if value is None:
                raise Unsupported("a gradient that was not asked for")
            low.give(out, value)


def emit_rms_norm(low: Lowering, op: Operator) -> None:
    """``rms_norm``: each row divided by the root of its mean square."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    (x,) = _given(low, op.args[0])
    stay, rows, n = _row_of(low, x, call["normalized_shape"])
    (weight,) = _weights(low, x, stay, call.get("weight"))
    eps = call.get("eps")
    if not isinstance(eps, float) and (eps is not None or x.dtype in HALVES):
        raise Unsupported("eps")
    text = low.number(float(torch.finfo(x.dtype).eps) if eps is None else eps).text
    made = low.fresh(x.dtype, x.dims)
    t, wide = computed(x), low.target.sums(x.dtype)
    with low.row.each(low, rows, n, ("x", x), ("y", made)):
        low.w.line(f"{wide} squares = 0;")
        low.row.fold(low, n, [("+", "squares")], f"squares += ({wide})x[j] * x[j];")
        low.w.line(f"const {t} a = ({t})(1 / sqrt(squares / {n} + ({wide}){text}));")
        low.row.map(low, n, f"y[j] = x[j] * a{'' if weight is None else f' * p{weight.n}[j]'};")
    low.give(op.outputs[0], made)
