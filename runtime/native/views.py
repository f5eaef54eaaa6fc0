"""Views: other sizes and strides of the same memory.

    aten.select.int(%x, 0, %i)      ->      p9 = p3 + i * 64
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir import Operand, Operator, Variable
from runtime.native.layout import order_of
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest
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
    """``x[start:end:step]`` along a dimension, as Python clips it."""
    t = low.tensor(op.args[0])
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    dim = axis(t, call["dim"])
    step = call["step"]
    if type(step) is not int or step < 1:
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
    part = narrow(low, t, dim, start, length)
    if step != 1:
        strides = list(low.strides(part))
        strides[dim] = low.w.arith("*", strides[dim], step)
        if isinstance(length, int):
            count: Expr = -(-length // step)
        else:
            count = low.w.local("i64", "z")
            low.w.line(f"{count} = ({length} + {step - 1}) / {step};")
        part.strides, part.dims = tuple(strides), (*t.dims[:dim], count, *t.dims[dim + 1 :])
    low.give(op.outputs[0], part)


def emit_split(low: Lowering, op: Operator) -> None:
    """``split`` into parts of known sizes, or ``chunk``; outputs that nothing reads are left out."""
    t = low.tensor(op.args[0])
    dim = axis(t, op.args[2] if len(op.args) > 2 else op.kwargs.get("dim", 0))
    size, part = t.dims[dim], op.args[1]
    unread = set(low.live.unread[id(op)])
    if isinstance(part, (list, tuple)):
        known = [one for one in part if type(one) is int and one >= 0]
        if len(known) < len(part) or len(part) != len(op.outputs):
            raise Unsupported("parts that are not known")
        if isinstance(size, int) and sum(known) != size:
            raise Unsupported("parts that do not fit")
        if not isinstance(size, int):
            low.w.bail(f"{size} != {sum(known)}")
        for place, out in enumerate(op.outputs):
            if out not in unread:
                low.give(out, narrow(low, t, dim, sum(known[:place]), known[place]))
        return
    if op.name == "aten.chunk.default" and isinstance(size, int) and type(part) is int and part > 0:
        part = -(-size // part)
    if not isinstance(size, int) or type(part) is not int or part <= 0:
        raise Unsupported("parts that are not known")
    starts = range(0, size, part)
    if len(starts) != len(op.outputs):
        raise Unsupported("another number of parts")
    for start, out in zip(starts, op.outputs):
        if out not in unread:
            low.give(out, narrow(low, t, dim, start, min(part, size - start)))


def emit_transpose(low: Lowering, op: Operator) -> None:
    """``t``, ``T``, ``mT``, ``transpose``, its other names, and ``permute``."""
    t = low.tensor(op.args[0])
    short = op.name.split(".")[1]
    if short == "permute":
        dims = op.args[1]
        if not isinstance(dims, (list, tuple)):
            raise Unsupported("dimensions")
        places = [axis(t, dim) for dim in dims]
    else:
        places = list(range(t.rank))
        if short in ("t", "numpy_T"):
            if t.rank > 2:
                raise Unsupported("a rank")
            places.reverse()
        elif short == "mT":
            if t.rank < 2:
                raise Unsupported("a rank")
            places[-2:] = places[:-3:-1]
        else:
            a, b = axis(t, op.args[1]), axis(t, op.args[2])
            places[a], places[b] = places[b], places[a]
    low.memory(t)
    if not t.order:
        raise Unsupported("an unknown layout")
    strides = low.strides(t)
    order = tuple(places.index(dim) for dim in t.order)
    if t.strides is not None and 0 in t.strides and order != identity(t.rank):
        order = ()  # what lies nowhere has no place in it
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
    order = identity(len(dims)) if t.straight else ()  # how PyTorch arranges what is computed of it is not certain
    low.give(op.outputs[0], low.view(t, dims, None if dense else (*strides[:dim], step, *strides[dim:]), 0, order))


def emit_squeeze(low: Lowering, op: Operator) -> None:
    """``squeeze`` of one dimension that is known to be 1, or known not to be."""
    t = low.tensor(op.args[0])
    dim = axis(t, op.args[1])
    size = t.dims[dim]
    low.memory(t)
    strides = low.strides(t)
    if not t.order:
        raise Unsupported("an unknown layout")
    if size == 1:
        dense = t.strides is None
        low.give(op.outputs[0], low.view(t, t.dims[:dim] + t.dims[dim + 1 :],
                                         None if dense else strides[:dim] + strides[dim + 1 :], 0,
                                         _without(t.order, dim)))  # fmt: skip
    elif isinstance(size, int):
        low.give(op.outputs[0], low.view(t, t.dims, t.strides, 0, t.order))
    else:
        raise Unsupported("a size that may be 1")


def emit_expand(low: Lowering, op: Operator) -> None:
    """``expand``: stride 0 where a size of 1 becomes more."""
    t = low.tensor(op.args[0])
    sizes = op.args[1]
    if not isinstance(sizes, (list, tuple)) or len(sizes) < t.rank:
        raise Unsupported("sizes")
    low.memory(t)
    own = low.strides(t)
    missing = len(sizes) - t.rank
    dims: list[Expr] = []
    strides: list[Expr] = []
    for place, wanted in enumerate(sizes):
        size = None if type(wanted) is int and wanted == -1 else low.size(wanted)
        if size is not None and not isinstance(size, int):
            low.w.bail(f"{size} < 0")
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
    low.give(op.outputs[0], low.view(t, dims, strides, 0, identity(len(dims)) if t.straight else ()))


def emit_view(low: Lowering, op: Operator) -> None:
    """``view`` and ``reshape``: a view where memory allows, else ``reshape`` makes a copy."""
    t = low.tensor(op.args[0])
    wanted = op.args[1]
    if not isinstance(wanted, (list, tuple)):
        raise Unsupported("sizes")
    low.memory(t)
    _give_in_other_sizes(low, op, t, _wanted(low, t, wanted))


def emit_flatten(low: Lowering, op: Operator) -> None:
    """``flatten``: the very same object where there is nothing to flatten, else a ``reshape``."""
    t = low.tensor(op.args[0])
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    low.memory(t)
    if not t.rank:
        _give_in_other_sizes(low, op, t, [1])
        return
    first, last = axis(t, call["start_dim"]), axis(t, call["end_dim"])
    if first == last:
        low.give(op.outputs[0], low.same(t))
        return
    if first > last:
        raise Unsupported("dimensions")
    dims = [*t.dims[:first], low.w.product(t.dims[first : last + 1]), *t.dims[last + 1 :]]
    _give_in_other_sizes(low, op, t, dims)


def _give_in_other_sizes(low: Lowering, op: Operator, t: Tensor, dims: list[Expr]) -> None:
    if t.strides is None and t.straight:
        low.give(op.outputs[0], low.view(t, dims, None))
        return
    parts = _split(low, t, dims) or _joined(low, t, dims)
    if parts is not None:
        strides, order = parts
        low.give(op.outputs[0], low.view(t, dims, strides, 0, order))
    elif not low.alone and (".reshape" in op.name or ".flatten" in op.name):
        low.give(op.outputs[0], _copied_or_viewed(low, t, dims))
    else:
        raise Unsupported("memory that is not dense")


def _wanted(low: Lowering, t: Tensor, wanted: Sequence[Operand]) -> list[Expr]:
    """The sizes that ``view`` is asked for, -1 worked out; C gives up where they do not fit."""
    total = low.w.product(t.dims)
    if any(type(one) is int and one == -1 for one in wanted):
        rest: Expr = 1
        for one in wanted:
            if not (type(one) is int and one == -1):
                size = low.size(one)
                if not isinstance(size, int):  # another -1, which PyTorch refuses
                    low.w.bail(f"{size} < 0")
                rest = low.w.arith("*", size, rest)
        if isinstance(total, int) and isinstance(rest, int):
            if rest == 0 or total % rest:
                raise Unsupported("sizes that do not fit")
            missing: Expr = total // rest
        else:
            low.w.bail(f"!({rest}) || ({total}) % ({rest})")
            missing = low.w.local("i64", "z")
            low.w.line(f"{missing} = ({total}) / ({rest});")
        return [missing if type(one) is int and one == -1 else low.size(one) for one in wanted]
    dims = [low.size(one) for one in wanted]
    count = low.w.product(tuple(dims))
    if count != total:
        low.w.bail(f"{count} != {total}")
    for dim in dims:
        if not isinstance(dim, int):
            low.w.bail(f"{dim} < 0")
    return dims


def _split(low: Lowering, t: Tensor, dims: Sequence[Expr]) -> tuple[list[Expr], tuple[int, ...]] | None:
    """The strides, and the order, of a view in which each dimension stays itself or becomes known parts, as ``view``
    gives them; None where dimensions would be joined."""
    strides = low.strides(t)
    found: list[Expr] = [0] * len(dims)
    parts: dict[int, list[int]] = {}
    at, place = len(dims) - 1, t.rank - 1
    while place >= 0:
        size, base, mine = t.dims[place], strides[place], parts.setdefault(place, [])
        place -= 1
        while place >= 0 and t.dims[place] == 1:
            place -= 1
        seen = 1
        while at >= 0 and (dims[at] == 1 or (isinstance(size, int) and seen < size)):
            part = dims[at]
            if not isinstance(part, int):
                return None
            found[at] = low.w.arith("*", base, seen)
            seen *= part
            mine.insert(0, at)
            at -= 1
        if isinstance(size, int):
            if seen != size:
                return None
            continue
        if at < 0 or dims[at] != size:
            return None
        found[at] = base
        mine.insert(0, at)
        at -= 1
        while at >= 0 and dims[at] == 1:
            found[at] = low.w.arith("*", base, size)
            mine.insert(0, at)
            at -= 1
    order = tuple(one for dim in t.order for one in parts.get(dim, ()))
    certain = t.straight or (len(order) == len(dims) and 1 not in dims)
    return (found, order if certain else ()) if at < 0 else None


def _joined(low: Lowering, t: Tensor, dims: Sequence[Expr]) -> tuple[list[Expr], tuple[int, ...]] | None:
    """The strides, and the order, of a view in which dimensions that lie side by side are joined; None where sizes or
    strides are not known before the call, or no view is possible. The method is PyTorch's (``computeStride``)."""
    strides = low.strides(t)
    sizes, own, wanted = ([one for one in several if isinstance(one, int)] for several in (t.dims, strides, dims))
    if len(sizes) < t.rank or len(own) < t.rank or len(wanted) < len(dims) or 0 in sizes:
        return None
    found = [0] * len(wanted)
    at, base, count, seen = len(wanted) - 1, own[-1] if own else 1, 1, 1
    for dim in reversed(range(t.rank)):
        count *= sizes[dim]
        if dim and (sizes[dim - 1] == 1 or own[dim - 1] == count * base):
            continue
        while at >= 0 and (seen < count or wanted[at] == 1):
            found[at] = seen * base
            seen *= wanted[at]
            at -= 1
        if seen != count:
            return None
        if dim:
            base, count, seen = own[dim - 1], 1, 1
    return (list(found), order_of(tuple(wanted), tuple(found)) or ()) if at < 0 else None


def _copied_or_viewed(low: Lowering, t: Tensor, dims: list[Expr]) -> Tensor:
    """``reshape`` of what does not lie row after row: PyTorch copies it, unless sizes of 1 allow a view.

    C asks at run time. A view that is not dense is left to Python.
    """
    w = low.w
    found = low.blank(t.dtype, dims)
    sizes, own, wanted = (", ".join(map(str, one)) for one in (t.dims, low.strides(t), dims or [0]))
    w.dense(t.dims)
    is_view = w.local("i64", "v")
    w.line(f"{is_view} = d2s_viewable({t.rank}, (const i64[]){{{sizes}}}, (const i64[]){{{own}}}, {len(dims)}, "
           f"(const i64[]){{{wanted}}});")  # fmt: skip
    w.bail(f"{is_view} < 0")
    with w.block(f"if ({is_view})"):
        w.line(f"b{found.n} = b{t.n}; b{t.n}->rc++; p{found.n} = p{t.n}; o{found.n} = ++objects | VIEW;")
    with w.block("else"):
        rows = low.fresh(t.dtype, t.dims)
        nest = Nest(t.dims, rows.order)
        nest.store(low, rows, nest.load(low, t))
        nest.write(low)
        w.line(f"b{found.n} = b{rows.n}; p{found.n} = p{rows.n}; o{found.n} = o{rows.n}; b{rows.n} = 0;")
    return found


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
