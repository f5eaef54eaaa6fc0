"""Operators on rows, each of which stays in the fastest memory from its first to its last use: softmax and norms.

    aten._softmax.default(%x, -1, False)      ->      for (i ...) { largest of x; sum of exp(x - largest); y }

A row is the last dimensions of dense memory. Sums are added in double.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from runtime.ir import Operand, Operator
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS, suffix
from runtime.native.values import Expr, Tensor, Unsupported
from runtime.native.views import axis
from runtime.ops import aten


def _given(low: Lowering, *operands: Operand) -> list[Tensor]:
    """Tensors of one dtype of floats in dense memory."""
    found = [low.memory(low.tensor(one)) for one in operands]
    if any(one.dtype != found[0].dtype or one.strides is not None or not one.straight for one in found) or (
            found[0].dtype not in FLOATS):  # fmt: skip
        raise Unsupported("these tensors")
    low.flush()
    return found


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


@contextmanager
def _each(low: Lowering, rows: Expr, n: Expr, *tensors: tuple[str, Tensor]) -> Iterator[None]:
    """A loop over rows, with a pointer to the row of each tensor."""
    w = low.w
    with w.block(f"for (i64 i = 0; i < {rows}; i++)"):
        for name, t in tensors:
            w.line(f"{t.ctype} *{name} = p{t.n} + i * {n};")
        yield


def fold(low: Lowering, n: Expr, clause: str, step: str) -> None:
    """A fold over the elements of a row."""
    low.w.line(f"#pragma omp simd reduction({clause})")
    low.w.line(f"for (i64 j = 0; j < {n}; j++) {{ {step} }}")


def _map(low: Lowering, n: Expr, step: str) -> None:
    low.w.line("#pragma GCC ivdep")
    low.w.line(f"for (i64 j = 0; j < {n}; j++) {{ {step} }}")


def emit_softmax(low: Lowering, op: Operator) -> None:
    """``softmax`` and ``log_softmax`` along the last dimension."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    (x,) = _given(low, op.args[0])
    if call.get("half_to_float") or call.get("dtype") not in (None, x.dtype) or not x.rank or (
            axis(x, call["dim"]) != x.rank - 1):  # fmt: skip
        raise Unsupported("this softmax")
    made = low.fresh(x.dtype, x.dims)
    n, s, t = x.dims[-1], suffix(x.dtype), x.ctype
    with _each(low, low.w.product(x.dims[:-1]), n, ("x", x), ("y", made)):
        low.w.line(f"{t} top = -INFINITY; double sum = 0;")
        fold(low, n, "max:top", "top = x[j] > top ? x[j] : top;")
        if "log" in op.name:
            fold(low, n, "+:sum", f"sum += m_exp_{s}(x[j] - top);")
            low.w.line(f"const {t} rest = ({t})log(sum);")
            _map(low, n, "y[j] = x[j] - top - rest;")
        else:
            fold(low, n, "+:sum", f"const {t} e = m_exp_{s}(x[j] - top); y[j] = e; sum += e;")
            low.w.line(f"const {t} part = ({t})(1 / sum);")
            _map(low, n, "y[j] = y[j] * part;")
    low.give(op.outputs[0], made)


def emit_softmax_backward(low: Lowering, op: Operator) -> None:
    """The gradients of both, from their results."""
    g, y = _given(low, *op.args[:2])
    _alike(low, g, y)
    if op.args[3] != y.dtype or not y.rank or axis(y, op.args[2]) != y.rank - 1:
        raise Unsupported("this softmax")
    made = low.fresh(y.dtype, y.dims)
    n, s, t = y.dims[-1], suffix(y.dtype), y.ctype
    with _each(low, low.w.product(y.dims[:-1]), n, ("g", g), ("y", y), ("d", made)):
        low.w.line("double sum = 0;")
        if "log" in op.name:
            fold(low, n, "+:sum", "sum += g[j];")
            low.w.line(f"const {t} total = ({t})sum;")
            _map(low, n, f"d[j] = g[j] - m_exp_{s}(y[j]) * total;")
        else:
            fold(low, n, "+:sum", "sum += g[j] * y[j];")
            low.w.line(f"const {t} total = ({t})sum;")
            _map(low, n, "d[j] = y[j] * (g[j] - total);")
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
    w, t = low.w, x.ctype
    made = low.fresh(x.dtype, x.dims)
    whole = len(op.outputs) == 3
    facts = [low.fresh(x.dtype, (*x.dims[:stay], *[1] * (x.rank - stay))) for _ in range(2)] if whole else []
    with _each(low, rows, n, ("x", x), ("y", made)):
        w.line("double sum = 0, squares = 0;")
        fold(low, n, "+:sum", "sum += x[j];")
        w.line(f"const double mean = sum / {n};")
        fold(low, n, "+:squares", "const double v = x[j] - mean; squares += v * v;")
        w.line(f"const double inverse = 1 / sqrt(squares / {n} + {eps});")
        w.line(f"const {t} a = ({t})inverse, m = ({t})mean;")
        factor = "" if weight is None else f" * p{weight.n}[j]"
        addend = "" if bias is None else f" + p{bias.n}[j]"
        _map(low, n, f"y[j] = (x[j] - m) * a{factor}{addend};")
        for one, text in zip(facts, ("mean", "inverse")):
            w.line(f"p{one.n}[i] = ({t}){text};")
    unread = set(low.live.unread[id(op)])
    for out, value in zip(op.outputs, [made, *facts]):
        if out in unread:
            low.release(value)
        else:
            low.give(out, value)


def emit_layer_norm_backward(low: Lowering, op: Operator) -> None:
    """The gradients of the input, the weight and the bias; nothing reads those that were not asked for."""
    g, x, mean, inverse = _given(low, op.args[0], op.args[1], op.args[3], op.args[4])
    _alike(low, g, x)
    stay, rows, n = _row_of(low, x, op.args[2])
    (weight,) = _weights(low, x, stay, op.args[5])
    mask = op.args[7]
    if not isinstance(mask, (list, tuple)) or any(type(one) is not bool for one in mask):
        raise Unsupported("a mask")
    for one in (mean, inverse):
        low.w.bail(f"{low.w.product(one.dims)} != {rows}")
    w, t = low.w, x.ctype
    unread = set(low.live.unread[id(op)])
    wanted = [asked and out not in unread for asked, out in zip(mask, op.outputs)]
    made = [low.fresh(x.dtype, x.dims if not place else x.dims[stay:]) if one else None
            for place, one in enumerate(wanted)]  # fmt: skip
    sums: list[Tensor | None] = [low.fresh(torch.float64, x.dims[stay:]) if one else None for one in made[1:]]
    for total in sums:
        if total is not None:
            w.line(f"d2s_zero(p{total.n}, {n} * 8);")
    factor = "" if weight is None else f" * p{weight.n}[j]"
    pointers = [("g", g), ("x", x)] + ([("d", made[0])] if made[0] is not None else [])
    with _each(low, rows, n, *pointers):
        w.line(f"const {t} a = p{inverse.n}[i], m = p{mean.n}[i];")
        if made[0] is not None:
            w.line("double first = 0, second = 0;")
            fold(low, n, "+:first, second",
                  f"const {t} v = g[j]{factor}; first += v; second += v * ((x[j] - m) * a);")  # fmt: skip
            w.line(f"const {t} u = ({t})(first / {n}), s = ({t})(second / {n});")
            _map(low, n, f"d[j] = a * (g[j]{factor} - u - (x[j] - m) * a * s);")
        for total, step in zip(sums, ("g[j] * ((x[j] - m) * a)", "g[j]")):
            if total is not None:
                _map(low, n, f"p{total.n}[j] += {step};")
    for total, result in zip(sums, made[1:]):
        if total is not None and result is not None:
            _map(low, n, f"p{result.n}[j] = ({t})p{total.n}[j];")
            low.release(total)
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
    if eps is not None and not isinstance(eps, float):
        raise Unsupported("eps")
    text = low.number(float(torch.finfo(x.dtype).eps) if eps is None else eps).text
    made = low.fresh(x.dtype, x.dims)
    w, t = low.w, x.ctype
    with _each(low, rows, n, ("x", x), ("y", made)):
        w.line("double squares = 0;")
        fold(low, n, "+:squares", "squares += (double)x[j] * x[j];")
        w.line(f"const {t} a = ({t})(1 / sqrt(squares / {n} + {text}));")
        _map(low, n, f"y[j] = x[j] * a{'' if weight is None else f' * p{weight.n}[j]'};")
    low.give(op.outputs[0], made)
