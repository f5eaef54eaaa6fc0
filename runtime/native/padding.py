"""Bigger tensors made of one: with numbers around it, or with each slice several times.

    aten.pad.default(%x, [1, 2])      ->      p9[0 ... n + 3] = 0; p9[1 ... n + 1] = p3[...]
"""

from __future__ import annotations

from runtime.ir import Operator
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest
from runtime.native.pointwise import element
from runtime.native.values import Expr, Number, Unsupported
from runtime.native.views import axis
from runtime.ops import aten


def emit(low: Lowering, op: Operator) -> None:
    """``pad`` with one number around."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    t = low.tensor(op.args[0])
    pads = call["pad"]
    if call.get("mode", "constant") != "constant" or not isinstance(pads, (list, tuple)) or len(pads) % 2:
        raise Unsupported("this padding")
    if t.rank > 3 and not t.straight:
        raise Unsupported("a result that may have its channels last")
    w = low.w
    sizes = [low.size(one) for one in pads]
    unknown = [one for one in sizes if not isinstance(one, int)]
    if not t.straight and not any(one for one in sizes if isinstance(one, int)):  # by nothing: it lies as it did
        if not unknown or low.alone:
            raise Unsupported("a layout")
        w.bail(f"!({' || '.join(unknown)})")
    dims, starts = list(t.dims), list[Expr]([0] * t.rank)
    for index, (before, after) in enumerate(zip(sizes[::2], sizes[1::2])):
        for one in (before, after):
            if isinstance(one, int) and one < 0:
                raise Unsupported("a part that is cut off")
            if not isinstance(one, int):
                w.bail(f"{one} < 0")
        dim = t.rank - 1 - index
        if dim < 0:
            raise Unsupported("dimensions")
        starts[dim] = before
        dims[dim] = w.arith("+", w.arith("+", t.dims[dim], before), after)
    value = call["value"]
    low.memory(t)
    low.flush()
    made = low.fresh(t.dtype, dims)
    nest = Nest(tuple(dims), made.order)
    nest.store(low, made, element(low, nest, Number("int", "0") if value is None else low.number(value), t.dtype))
    nest.write(low)
    strides = w.dense(tuple(dims))
    offset: Expr = 0
    for start, stride in zip(starts, strides):
        offset = w.arith("+", w.arith("*", start, stride), offset)
    part = low.blank(t.dtype, t.dims)
    part.strides = strides
    w.line(f"p{part.n} = p{made.n} + {offset};")
    inner = Nest(t.dims, part.order)
    inner.store(low, part, inner.load(low, t))
    inner.write(low)
    low.give(op.outputs[0], made)


def emit_repeat(low: Lowering, op: Operator) -> None:
    """``repeat_interleave``: each slice along a dimension, so many times."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    t, times = low.tensor(op.args[0]), call["repeats"]
    if type(times) is not int or times < 1 or call["dim"] is None or call["output_size"] is not None:
        raise Unsupported("these repeats")
    dim = axis(t, call["dim"])
    low.memory(t)
    low.flush()
    w = low.w
    made = low.fresh(t.dtype, (*t.dims[:dim], w.arith("*", t.dims[dim], times), *t.dims[dim + 1 :]))
    apart = (*t.dims[: dim + 1], times, *t.dims[dim + 1 :])
    own, source = low.strides(t), low.blank(t.dtype, apart)
    source.strides = (*own[: dim + 1], 0, *own[dim + 1 :])
    to = low.blank(t.dtype, apart)
    w.line(f"p{source.n} = p{t.n}; p{to.n} = p{made.n};")
    nest = Nest(apart, to.order)
    nest.store(low, to, nest.load(low, source))
    nest.write(low)
    if not low.alone:
        w.line(f"o{made.n} |= VIEW;")  # PyTorch's is one, of memory that nobody else has
    low.give(op.outputs[0], made)


__all__ = ["emit", "emit_repeat"]
