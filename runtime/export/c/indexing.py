"""Elements and rows at places that tensors say.

    aten.gather.default(%x, 1, %i)      ->      for (j0 ...) for (j1 ...) y[...] = x[j0 * 5 + i[...]]
"""

from __future__ import annotations

import torch

from runtime.export.c.elements import arguments, at, dtype_of, each, ready, size
from runtime.ir import Operator
from runtime.native.lowering import Lowering
from runtime.native.values import Expr, Number, Tensor, Unsupported
from runtime.native.views import axis

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _place(low: Lowering, index: Tensor, places: list[str], limit: Expr, *, negative: bool) -> str:
    """An index of a tensor of indices, held against the size it indexes."""
    if index.dtype not in _WHOLE:
        raise Unsupported("indices that are no whole numbers")
    name = size(low, at(low, index, *places))
    if negative:
        low.w.line(f"{name} += {name} < 0 ? {limit} : 0;")
    low.w.bail(f"{name} < 0 || {name} >= {limit}")
    return name


def emit_embedding(low: Lowering, op: Operator) -> None:
    """``embedding``: a row of the weight for each index."""
    call = arguments(op)
    weight, index = ready(low, call["weight"], call["indices"])
    made = low.fresh(weight.dtype, (*index.dims, weight.dims[1]))
    with each(low, index.dims) as places:
        row = _place(low, index, places, weight.dims[0], negative=False)
        with each(low, (weight.dims[1],)) as (j,):
            low.w.line(f"{at(low, made, *places, j)} = {at(low, weight, row, j)};")
    low.give(op.outputs[0], made)


def emit_gather(low: Lowering, op: Operator) -> None:
    """``gather``: along one dimension, the place is what stands in the index."""
    call = arguments(op)
    along = "indices" in call  # then other sizes must be equal, as none is broadcast here
    x, index = ready(low, call["self"], call["indices" if along else "index"])
    if x.rank != index.rank or not x.rank:
        raise Unsupported("ranks that differ")
    dim = axis(x, call["dim"])
    for place, (own, other) in enumerate(zip(index.dims, x.dims)):
        if place != dim and own != other:
            low.w.bail(f"{own} {'!=' if along else '>'} {other}")
    made = low.fresh(x.dtype, index.dims)
    with each(low, index.dims) as places:
        found = _place(low, index, places, x.dims[dim], negative=False)
        low.w.line(f"{at(low, made, *places)} = {at(low, x, *places[:dim], found, *places[dim + 1 :])};")
    low.give(op.outputs[0], made)


def emit_index_select(low: Lowering, op: Operator) -> None:
    """``index_select``: slices along one dimension."""
    call = arguments(op)
    x, index = ready(low, call["self"], call["index"])
    if index.rank > 1 or not x.rank:
        raise Unsupported("a rank")
    dim = axis(x, call["dim"])
    count: Expr = index.dims[0] if index.rank else 1
    made = low.fresh(x.dtype, (*x.dims[:dim], count, *x.dims[dim + 1 :]))
    with each(low, (count,)) as (i,):
        found = _place(low, index, [i][: index.rank], x.dims[dim], negative=False)
        with each(low, (*x.dims[:dim], *x.dims[dim + 1 :])) as places:
            before, after = places[:dim], places[dim:]
            low.w.line(f"{at(low, made, *before, i, *after)} = {at(low, x, *before, found, *after)};")
    low.give(op.outputs[0], made)


def nonzero(low: Lowering, mask: Tensor) -> list[Tensor]:
    """For each dimension of a mask, the places of what is not zero, in order."""
    count = size(low, "0")
    with each(low, mask.dims) as places:
        low.w.line(f"{count} += {at(low, mask, *places)} != 0;")
    found = [low.fresh(torch.int64, (count,)) for _ in mask.dims]
    low.w.line(f"{count} = 0;")
    with each(low, mask.dims) as places:
        stores = " ".join(f"p{one.n}[{count}] = {place};" for one, place in zip(found, places))
        low.w.line(f"if ({at(low, mask, *places)} != 0) {{ {stores} {count}++; }}")
    return found


def emit_nonzero(low: Lowering, op: Operator) -> None:
    """``nonzero``: the places as rows."""
    (x,) = ready(low, op.args[0])
    if not x.rank:
        raise Unsupported("a number")
    found = nonzero(low, x)
    made = low.fresh(torch.int64, (found[0].dims[0], x.rank))
    with each(low, made.dims[:1]) as (i,):
        for place, one in enumerate(found):
            low.w.line(f"p{made.n}[{i} * {x.rank} + {place}] = p{one.n}[{i}];")
    for one in found:
        low.release(one)
    low.give(op.outputs[0], made)


def _indices(low: Lowering, x: Tensor, given: object) -> tuple[list[Tensor | None], list[Tensor]]:
    """An index for each dimension of x, None for all of it; and what was made for masks."""
    if not isinstance(given, (list, tuple)):
        raise Unsupported("indices")
    found: list[Tensor | None] = []
    own: list[Tensor] = []
    for one in given:
        if one is None:
            found.append(None)
            continue
        (index,) = ready(low, one)
        if index.dtype is not torch.bool:
            found.append(index)
            continue
        start = len(found)
        if not index.rank or start + index.rank > x.rank:
            raise Unsupported("this mask")
        for place, dim in enumerate(index.dims):
            if dim != x.dims[start + place]:
                low.w.bail(f"{dim} != {x.dims[start + place]}")
        made = nonzero(low, index)
        own += made
        found += made
    found += [None] * (x.rank - len(found))
    return found, own


def emit_index(low: Lowering, op: Operator) -> None:
    """``x[i, :, j]`` with tensors of whole numbers, or masks."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    indices, own = _indices(low, x, call["indices"])
    given = [one for one in indices if one is not None]
    where = [place for place, one in enumerate(indices) if one is not None]
    rank = max(one.rank for one in given)
    common: list[Expr] = [1] * rank
    for one in given:
        for place, dim in enumerate(one.dims, start=rank - one.rank):
            if common[place] == 1:
                common[place] = dim
            elif dim not in (1, common[place]):
                low.w.bail(f"{dim} != {common[place]}")
    together = where == list(range(where[0], where[0] + len(where)))
    start = where[0] if together else 0
    rest = [place for place in range(x.rank) if place not in where]
    stay = [x.dims[place] for place in rest]
    made = low.fresh(x.dtype, (*stay[:start], *common, *stay[start:]))
    with each(low, common) as places:
        found = {place: _place(low, one, places[rank - one.rank :], x.dims[place], negative=True)
                 for place, one in enumerate(indices) if one is not None}  # fmt: skip
        with each(low, stay) as others:
            source = [found[place] if place in found else others[rest.index(place)] for place in range(x.rank)]
            low.w.line(f"{at(low, made, *others[:start], *places, *others[start:])} = {at(low, x, *source)};")
    for one in own:
        low.release(one)
    low.give(op.outputs[0], made)


def emit_index_put(low: Lowering, op: Operator) -> None:
    """``index_put``: a copy in which ``x[i, :, j]`` is something else."""
    call = arguments(op)
    x, values = ready(low, call["self"], call["values"])
    if values.dtype != x.dtype or (call["accumulate"] and not x.dtype.is_floating_point):
        raise Unsupported("dtypes that differ")
    indices, own = _indices(low, x, call["indices"])
    given = [one for one in indices if one is not None]
    where = [place for place, one in enumerate(indices) if one is not None]
    rank = max(one.rank for one in given)
    if any(one.rank != rank for one in given) or where != list(range(where[0], where[0] + len(where))):
        raise Unsupported("indices of different ranks")
    for one in given[1:]:
        for dim, first in zip(one.dims, given[0].dims):
            if dim != first:
                low.w.bail(f"{dim} != {first}")
    rest = [place for place in range(x.rank) if place not in where]
    stay = [x.dims[place] for place in rest]
    start = where[0]
    dims = [*stay[:start], *given[0].dims, *stay[start:]]
    if values.rank > len(dims):
        raise Unsupported("more values than places")
    for dim, wanted in zip(reversed(values.dims), reversed(dims)):
        if dim not in (1, wanted):
            low.w.bail(f"{dim} != {wanted}")
    made = low.fresh(x.dtype, x.dims)
    low.copy(made, x)
    with each(low, given[0].dims) as places:
        found = {place: _place(low, one, places, x.dims[place], negative=True)
                 for place, one in enumerate(indices) if one is not None}  # fmt: skip
        with each(low, stay) as others:
            target = [found[place] if place in found else others[rest.index(place)] for place in range(x.rank)]
            source = [*others[:start], *places, *others[start:]][len(dims) - values.rank :]
            low.w.line(f"{at(low, made, *target)} {'+=' if call['accumulate'] else '='} {at(low, values, *source)};")
    for one in own:
        low.release(one)
    low.give(op.outputs[0], made)


def emit_masked_select(low: Lowering, op: Operator) -> None:
    """``masked_select``: the elements at which a mask of the same sizes is true."""
    x, mask = ready(low, *op.args[:2])
    if x.rank != mask.rank or not x.rank:
        raise Unsupported("sizes that differ")
    for own, other in zip(x.dims, mask.dims):
        if own != other:
            low.w.bail(f"{own} != {other}")
    places = nonzero(low, mask)
    made = low.fresh(x.dtype, places[0].dims)
    with each(low, made.dims) as (i,):
        low.w.line(f"p{made.n}[{i}] = {at(low, x, *(f'p{one.n}[{i}]' for one in places))};")
    for one in places:
        low.release(one)
    low.give(op.outputs[0], made)


def emit_scatter(low: Lowering, op: Operator) -> None:
    """``scatter`` and ``scatter_add``: a copy in which elements are set, or added to, where the index says."""
    call = arguments(op)
    x, index = ready(low, call["self"], call["index"])
    if x.rank != index.rank or not x.rank or call.get("reduce") is not None:
        raise Unsupported("ranks that differ")
    source: Tensor | Number = low.number(call["value"]) if "value" in call else ready(low, call["src"])[0]
    if isinstance(source, Tensor) and source.dtype != x.dtype:
        raise Unsupported("dtypes that differ")
    dim = axis(x, call["dim"])
    for place, (own, other) in enumerate(zip(index.dims, x.dims)):
        if place != dim and own != other:
            low.w.bail(f"{own} > {other}")
        if isinstance(source, Tensor) and own != source.dims[place]:
            low.w.bail(f"{own} > {source.dims[place]}")
    made = low.fresh(x.dtype, x.dims)
    low.copy(made, x)
    sign = "+=" if "add" in op.name else "="
    with each(low, index.dims) as places:
        found = _place(low, index, places, x.dims[dim], negative=False)
        value = at(low, source, *places) if isinstance(source, Tensor) else f"({x.ctype}){source.text}"
        target = at(low, made, *places[:dim], found, *places[dim + 1 :])
        whole = sign == "+=" and not x.dtype.is_floating_point
        low.w.line(f"{target} = ({x.ctype})((uint64_t){target} + (uint64_t){value});" if whole
                   else f"{target} {sign} {value};")  # fmt: skip
    low.give(op.outputs[0], made)


def emit_one_hot(low: Lowering, op: Operator) -> None:
    """``one_hot`` with a known number of classes."""
    call = arguments(op)
    (x,) = ready(low, call["self"])
    count = low.size(call["num_classes"])
    if isinstance(count, int) and count < 1:
        raise Unsupported("as many classes as the values say")
    made = low.fresh(dtype_of(op.outputs[0]), (*x.dims, count))
    low.w.line(f"d2s_zero(p{made.n}, ({low.w.product(made.dims)}) * 8);")
    with each(low, x.dims) as places:
        low.w.line(f"{at(low, made, *places, _place(low, x, places, count, negative=False))} = 1;")
    low.give(op.outputs[0], made)


NAMES = {
    emit_embedding: ["embedding.default"],
    emit_gather: ["gather.default", "take_along_dim.default"],
    emit_index_select: ["index_select.default"],
    emit_index: ["index.Tensor"],
    emit_index_put: ["index_put.default"],
    emit_masked_select: ["masked_select.default"],
    emit_nonzero: ["nonzero.default"],
    emit_scatter: ["scatter.src", "scatter.value", "scatter_add.default"],
    emit_one_hot: ["one_hot.default"],
}
