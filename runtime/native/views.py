"""Views: other sizes and strides of the same memory.

    aten.select.int(%x, 0, %i)      ->      p9 = p3 + i * 64
"""

from __future__ import annotations

from runtime.ir import Operator, Variable
from runtime.native.lowering import Lowering
from runtime.native.values import Expr, Number, Tensor, Unsupported, identity
from runtime.ops import aten


def axis(t: Tensor, dim: object, more: int = 0) -> int:
    """A dimension counted from the front."""
    if type(dim) is not int or not -(t.rank + more) <= dim < t.rank + more:
        raise Unsupported("this dimension")
    return dim % (t.rank + more)


def _without(order: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return tuple(one - (one > dim) for one in order if one != dim)


def select(low: Lowering, t: Tensor, dim: int, index: Number) -> Tensor:
    """One slice along a dimension; an index that is out of range ends the attempt."""
    low.memory(t)
    if not t.order:
        raise Unsupported("an unknown layout")
    size, strides = t.dims[dim], low.strides(t)
    at = low.w.local("i64", "y")
    low.w.line(f"{at} = {index.text};")
    if not (isinstance(index.dim, int) and isinstance(size, int) and -size <= index.dim < size):
        low.w.bail(f"{at} < -({size}) || {at} >= {size}")
    low.w.line(f"{at} += {at} < 0 ? {size} : 0;")
    dims = t.dims[:dim] + t.dims[dim + 1 :]
    dense = t.strides is None and t.straight and dim == 0
    return low.view(t, dims, None if dense else strides[:dim] + strides[dim + 1 :],
                    f"{at} * {strides[dim]}", _without(t.order, dim))  # fmt: skip


def emit_select(low: Lowering, op: Operator) -> None:
    """``select(x, dim, index)``."""
    t = low.tensor(op.args[0])
    low.give(op.outputs[0], select(low, t, axis(t, op.args[1]), low.integer(op.args[2])))


def narrow(low: Lowering, t: Tensor, dim: int, start: Expr, length: Expr) -> Tensor:
    """``length`` slices along a dimension, from ``start`` on."""
    low.memory(t)
    strides = low.strides(t)
    dims = (*t.dims[:dim], length, *t.dims[dim + 1 :])
    dense = t.strides is None and t.straight and dim == 0
    offset = low.w.arith("*", start, strides[dim])
    return low.view(t, dims, None if dense else strides, offset, t.order)


def emit_slice(low: Lowering, op: Operator) -> None:
    """``x[start:end]`` along a dimension, as Python clips it; steps other than 1 run in Python."""
    t = low.tensor(op.args[0])
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    dim = axis(t, call["dim"])
    if call["step"] != 1:
        raise Unsupported("a step")
    size = t.dims[dim]
    ends: list[Expr] = []
    for value, default in ((call["start"], 0), (call["end"], size)):
        if value is None or (type(value) is int and value >= 1 << 62):
            ends.append(default)
        elif type(value) is int and isinstance(size, int):
            ends.append(min(max(value + size if value < 0 else value, 0), size))
        else:
            given = low.integer(value)
            name = low.w.local("i64", "y")
            low.w.line(f"{name} = {given.text}; {name} += {name} < 0 ? {size} : 0;")
            low.w.line(f"{name} = {name} < 0 ? 0 : {name} > {size} ? {size} : {name};")
            ends.append(name)
    start, end = ends
    if isinstance(start, int) and isinstance(end, int):
        length: Expr = max(end - start, 0)
    else:
        length = low.w.local("i64", "z")
        low.w.line(f"{length} = {end} - {start} > 0 ? {end} - {start} : 0;")
    low.give(op.outputs[0], narrow(low, t, dim, start, length))


def emit_split(low: Lowering, op: Operator) -> None:
    """``split`` into parts of one size, or ``chunk``; outputs that nothing reads are left out."""
    t = low.tensor(op.args[0])
    dim = axis(t, op.args[2] if len(op.args) > 2 else op.kwargs.get("dim", 0))
    size, part = t.dims[dim], op.args[1]
    if op.name == "aten.chunk.default" and isinstance(size, int) and type(part) is int and part > 0:
        part = -(-size // part)
    if not isinstance(size, int) or type(part) is not int or part <= 0:
        raise Unsupported("parts that are not known")
    starts = range(0, size, part)
    if len(starts) != len(op.outputs):
        raise Unsupported("another number of parts")
    unread = set(low.live.unread[id(op)])
    for start, out in zip(starts, op.outputs):
        if out not in unread:
            low.give(out, narrow(low, t, dim, start, min(part, size - start)))


def emit_transpose(low: Lowering, op: Operator) -> None:
    """``t``, ``transpose`` and ``permute``."""
    t = low.tensor(op.args[0])
    short = op.name.split(".")[1]
    if short == "permute":
        dims = op.args[1]
        if not isinstance(dims, (list, tuple)):
            raise Unsupported("dimensions")
        places = [axis(t, dim) for dim in dims]
    else:
        places = list(range(t.rank))
        if short == "t":
            if t.rank > 2:
                raise Unsupported("a rank")
            places.reverse()
        else:
            a, b = axis(t, op.args[1]), axis(t, op.args[2])
            places[a], places[b] = places[b], places[a]
    low.memory(t)
    if not t.order:
        raise Unsupported("an unknown layout")
    strides = low.strides(t)
    order = tuple(places.index(dim) for dim in t.order)
    made = low.view(t, [t.dims[dim] for dim in places],
                    None if t.strides is None else [strides[dim] for dim in places], 0, order)  # fmt: skip
    made.origin = t.origin or t
    low.give(op.outputs[0], made)


def emit_unsqueeze(low: Lowering, op: Operator) -> None:
    """One more dimension, of size 1."""
    t = low.tensor(op.args[0])
    dim = axis(t, op.args[1], 1)
    low.memory(t)
    dense = t.strides is None and t.straight
    strides = low.strides(t)
    dims = (*t.dims[:dim], 1, *t.dims[dim:])
    step = low.w.arith("*", t.dims[dim], strides[dim]) if dim < t.rank else 1
    if not t.straight:
        raise Unsupported("a layout")
    low.give(op.outputs[0], low.view(t, dims, None if dense else (*strides[:dim], step, *strides[dim:])))


def emit_squeeze(low: Lowering, op: Operator) -> None:
    """``squeeze`` of one dimension that is known to be 1, or known not to be."""
    t = low.tensor(op.args[0])
    dim = axis(t, op.args[1])
    size = t.dims[dim]
    low.memory(t)
    strides = low.strides(t)
    if not t.straight:
        raise Unsupported("a layout")
    if size == 1:
        dense = t.strides is None
        low.give(op.outputs[0], low.view(t, t.dims[:dim] + t.dims[dim + 1 :],
                                         None if dense else strides[:dim] + strides[dim + 1 :]))  # fmt: skip
    elif isinstance(size, int):
        low.give(op.outputs[0], low.view(t, t.dims, t.strides))
    else:
        raise Unsupported("a size that may be 1")


def emit_expand(low: Lowering, op: Operator) -> None:
    """``expand``: stride 0 where a size of 1 becomes more."""
    t = low.tensor(op.args[0])
    sizes = op.args[1]
    if not isinstance(sizes, (list, tuple)) or len(sizes) < t.rank:
        raise Unsupported("sizes")
    low.memory(t)
    if not t.straight:
        raise Unsupported("a layout")
    own = low.strides(t)
    missing = len(sizes) - t.rank
    dims: list[Expr] = []
    strides: list[Expr] = []
    for place, wanted in enumerate(sizes):
        size = None if type(wanted) is int and wanted == -1 else low.size(wanted)
        if place < missing:
            if size is None:
                raise Unsupported("sizes")
            dims.append(size)
            strides.append(0)
            continue
        before, stride = t.dims[place - missing], own[place - missing]
        if size is None or size == before:
            dims.append(before)
            strides.append(stride)
        elif before == 1:
            dims.append(size)
            strides.append(0)
        else:
            low.w.bail(f"{before} != {size}")
            dims.append(before)
            strides.append(stride)
    low.give(op.outputs[0], low.view(t, dims, strides))


def emit_view(low: Lowering, op: Operator) -> None:
    """``view`` and ``reshape`` of dense memory."""
    t = low.tensor(op.args[0])
    wanted = op.args[1]
    if not isinstance(wanted, (list, tuple)):
        raise Unsupported("sizes")
    low.memory(t)
    if t.strides is not None or not t.straight:
        raise Unsupported("memory that is not dense")
    total = low.w.product(t.dims)
    if any(type(one) is int and one == -1 for one in wanted):
        rest: Expr = 1
        for one in wanted:
            if not (type(one) is int and one == -1):
                rest = low.w.arith("*", low.size(one), rest)
        if isinstance(total, int) and isinstance(rest, int):
            if rest == 0 or total % rest:
                raise Unsupported("sizes that do not fit")
            missing: Expr = total // rest
        else:
            low.w.bail(f"!({rest}) || ({total}) % ({rest})")
            missing = low.w.local("i64", "z")
            low.w.line(f"{missing} = ({total}) / ({rest});")
        dims = [missing if type(one) is int and one == -1 else low.size(one) for one in wanted]
    else:
        dims = [low.size(one) for one in wanted]
        count = low.w.product(tuple(dims))
        if count != total:
            low.w.bail(f"{count} != {total}")
        for dim in dims:
            if not isinstance(dim, int):
                low.w.bail(f"{dim} < 0")
    if "reshape" in op.name and tuple(dims) == t.dims:
        raise Unsupported("a reshape that may give the same object")
    low.give(op.outputs[0], low.view(t, dims, None))


def emit_alias(low: Lowering, op: Operator) -> None:
    """``detach`` and ``alias``: another object, all the same."""
    t = low.tensor(op.args[0])
    low.memory(t)
    low.give(op.outputs[0], low.view(t, t.dims, t.strides, 0, t.order, detached="detach" in op.name))


def emit_contiguous(low: Lowering, op: Operator) -> None:
    """``contiguous`` of what is dense: the very same object."""
    t = low.tensor(op.args[0])
    if t.strides is not None or not t.straight or op.kwargs or len(op.args) > 1:
        raise Unsupported("a copy")
    low.give(op.outputs[0], low.same(t))


def emit_unbind(low: Lowering, op: Operator) -> None:
    """The slices along a dimension of known size."""
    t = low.tensor(op.args[0])
    dim = axis(t, op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", 0))
    size = t.dims[dim]
    if not isinstance(size, int) or size != len(op.outputs) or not all(isinstance(o, Variable) for o in op.outputs):
        raise Unsupported("another number of slices")
    unread = set(low.live.unread[id(op)])
    for index, out in enumerate(op.outputs):
        if out not in unread:
            low.give(out, select(low, t, dim, Number("int", str(index), dim=index)))


__all__ = ["axis", "identity", "narrow", "select"]
