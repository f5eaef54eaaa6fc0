"""Gradients of slices: zeros with the gradient in the slice's place.

    aten.select_backward.default(%g, [8, 3], 0, %i)      ->      memset(p9, ...); p9 + i * 3 gets g
"""

from __future__ import annotations

from runtime.ir import Operator
from runtime.native.lowering import Lowering
from runtime.native.values import Expr, Tensor, Unsupported
from runtime.native.views import axis, narrow, select


def _zeros(low: Lowering, op: Operator) -> tuple[Tensor, Tensor]:
    """The gradient, and zeros of the sizes that were sliced."""
    g = low.memory(low.tensor(op.args[0]))
    dims = low.sizes(op.args[1])
    low.flush()
    made = low.fresh(g.dtype, dims)
    low.w.line(f"d2s_zero(p{made.n}, ({low.w.product(dims)}) * sizeof({made.ctype}));")
    return g, made


def _put(low: Lowering, op: Operator, g: Tensor, made: Tensor, part: Tensor) -> None:
    if part.rank != g.rank:
        raise Unsupported("another rank")
    for own, other in zip(part.dims, g.dims):
        if own != other:
            low.w.bail(f"{own} != {other}")
    low.copy(part, g)
    low.release(part)
    low.give(op.outputs[0], made)


def emit_select(low: Lowering, op: Operator) -> None:
    """The gradient of ``select``."""
    g, made = _zeros(low, op)
    _put(low, op, g, made, select(low, made, axis(made, op.args[2]), low.integer(op.args[3])))


def emit_slice(low: Lowering, op: Operator) -> None:
    """The gradient of ``slice`` with fixed ends and step 1."""
    g, made = _zeros(low, op)
    dim = axis(made, op.args[2])
    start, end, step = op.args[3], op.args[4], op.args[5]
    size = made.dims[dim]
    if step != 1 or type(start) is not int or type(end) is not int or not isinstance(size, int):
        raise Unsupported("ends that are not known")
    first, last = (min(max(one + size if one < 0 else one, 0), size) for one in (start, end))
    length: Expr = max(last - first, 0)
    _put(low, op, g, made, narrow(low, made, dim, first, length))
