"""The gradient of the negative log likelihood as a stage of rows: zeros but for each row's class.

    aten.nll_loss_backward.default(%g, %logs, %classes, ...)      ->      d[j] = j == t ? -g / count : 0

So it is one kernel with the gradient of ``log_softmax`` that reads it. A class that there is not stops the device, as
PyTorch's kernel does.
"""

from __future__ import annotations

import torch

from runtime.ir import Operator
from runtime.native.losses import MEAN, SUM
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS
from runtime.native.target import computed
from runtime.native.values import HALVES, Unsupported


def emit_nll_backward(low: Lowering, op: Operator) -> None:
    """The gradient of the mean or sum."""
    grad, x, target, count = low.row.given(low, [low.tensor(op.args[place]) for place in (0, 1, 2, 6)])
    ignored, reduction = low.integer(op.args[5]), op.args[4]
    if op.args[3] is not None or x.rank != 2 or target.rank != 1 or target.dtype is not torch.int64 or (
            reduction not in (MEAN, SUM) or grad.rank or count.rank or {grad.dtype, count.dtype} != {x.dtype}
            or x.dtype not in (*FLOATS, *HALVES)):  # fmt: skip
        raise Unsupported("this loss")
    if any(one.strides is not None or not one.straight for one in (x, target)):
        raise Unsupported("a layout")
    rows, n = x.dims
    if target.dims[0] != rows:
        low.w.bail(f"{target.dims[0]} != {rows}")
    made = low.fresh(x.dtype, x.dims)
    t = computed(x)
    with low.row.each(low, rows, n, ("d", made)):
        low.w.line(f"const i64 t = p{target.n}[i];")
        low.w.line(f"const bool counts = t != {ignored.text};")
        low.w.bail(f"counts && (t < 0 || t >= {n})")
        divisor = f" / p{count.n}[0]" if reduction == MEAN else ""
        low.w.line(f"const {t} g = counts ? -p{grad.n}[0]{divisor} : ({t})0;")
        low.row.map(low, n, f"d[j] = j == t ? g : ({t})0;")
    low.give(op.outputs[0], made)


__all__ = ["emit_nll_backward"]
