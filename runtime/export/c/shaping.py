"""Other sizes: views of memory as it lies, and copies where it lies otherwise.

    aten.repeat.default(%x, [2, 1])      ->      for (j0 ...) for (j1 ...) y[...] = x[j0 % 4 * 3 + j1]

While a tensor is written (in an ``update``) nothing is copied in place of a view: the write would go to the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from runtime.export.c.elements import arguments, at, dtype_of, each, known, ready, size
from runtime.ir import Operator, TensorType, Variable
from runtime.native import array, update, views
from runtime.native.loops import read
from runtime.native.lowering import Lowering, Rule
from runtime.native.pointwise import convert
from runtime.native.values import Expr, Items, Tensor, Unsupported, identity
from runtime.native.views import axis


def emit_update(low: Lowering, op: Operator) -> None:
    """``update``: as native C has it; inside, views are views."""
    before, low.writing = low.writing, True
    try:
        update.emit(low, op)
    finally:
        low.writing = before


def emit_write(low: Lowering, op: Operator) -> None:
    """A write that native C does not know: what the operator without the underscore gives, copied to where it belongs.
    """
    target = low.tensor(op.args[0])
    name = op.name.replace("_.", ".", 1)
    rule = low.rules.get(name)
    if rule is None or op.outputs and op.outputs[0].type != op.inputs[0].type:
        raise Unsupported(op.name.split(".")[1])
    low.memory(target)
    low.flush()
    value = Variable("written", TensorType(target.dtype, None))
    rule(low, Operator(name, op.args, op.kwargs, (value,), location=op.location))
    found = low.tensor(value)
    low.memory(found)
    low.flush()
    if found.dtype != target.dtype or found.rank != target.rank:
        raise Unsupported("another dtype")
    low.w.bail(f"b{found.n} == b{target.n}")  # else what is read would change while it is written
    for own, other in zip(found.dims, target.dims):
        if own != other:
            low.w.bail(f"{own} != {other}")
    with each(low, target.dims) as places:
        low.w.line(f"{at(low, target, *places)} = {at(low, found, *places)};")
    low.release(found)
    for out in op.outputs:
        if out not in set(low.live.unread[id(op)]):
            low.give(out, low.same(target))


def may_copy(low: Lowering) -> None:
    """Errors raised: Unsupported while a tensor is written."""
    if low.writing:
        raise Unsupported("a view that would be a copy, where a tensor is written")


def _as_dense(low: Lowering, t: Tensor) -> Tensor:
    """The tensor in dense memory of its own order, for a view of it."""
    low.memory(t)
    low.flush()
    if t.strides is None and t.straight:
        return t
    may_copy(low)
    return low.dense(t)


def _seen(low: Lowering, op: Operator, t: Tensor, dims: Sequence[Expr]) -> None:
    whole = _as_dense(low, t)
    low.give(op.outputs[0], low.view(whole, dims, None))
    if whole is not t:
        low.release(whole)


def emit_view(low: Lowering, op: Operator) -> None:
    """``view`` and ``reshape`` of any memory."""
    t = low.tensor(op.args[0])
    wanted = op.args[1]
    if not isinstance(wanted, (list, tuple)):
        raise Unsupported("sizes")
    w = low.w
    total = w.product(t.dims)
    dims: list[Expr] = []
    rest: Expr = 1
    for one in wanted:
        dim = -1 if type(one) is int and one == -1 else low.size(one)
        if isinstance(dim, str):
            # a size that is computed may be -1, too
            w.bail(f"{dim} < 0")
        dims.append(dim)
        rest = rest if dim == -1 else w.arith("*", dim, rest)
    if -1 in dims:
        if isinstance(total, int) and isinstance(rest, int):
            if rest == 0 or total % rest:
                raise Unsupported("sizes that do not fit")
            missing: Expr = total // rest
        else:
            w.bail(f"!({rest}) || ({total}) % ({rest})")
            missing = size(low, f"({total}) / ({rest})")
        dims[dims.index(-1)] = missing
    elif rest != total:
        w.bail(f"{rest} != {total}")
    _seen(low, op, t, dims)


def emit_flatten(low: Lowering, op: Operator) -> None:
    """``flatten``: some neighbouring dimensions as one."""
    call = arguments(op)
    t = low.tensor(call["self"])
    if not t.rank:
        _seen(low, op, t, (1,))
        return
    first, last = axis(t, call["start_dim"]), axis(t, call["end_dim"])
    if first == last:
        low.give(op.outputs[0], low.same(t))
        return
    _seen(low, op, t, (*t.dims[:first], low.w.product(t.dims[first : last + 1]), *t.dims[last + 1 :]))


def emit_unflatten(low: Lowering, op: Operator) -> None:
    """``unflatten``: a dimension as several."""
    call = arguments(op)
    t = low.tensor(call["self"])
    dim = axis(t, call["dim"])
    sizes = list(low.sizes(call["sizes"]))
    rest: Expr = 1
    for one in sizes:
        rest = rest if one == -1 else low.w.arith("*", one, rest)
    if -1 in sizes:
        low.w.bail(f"!({rest}) || {t.dims[dim]} % ({rest})")
        sizes[sizes.index(-1)] = size(low, f"{t.dims[dim]} / ({rest})")
    elif rest != t.dims[dim]:
        low.w.bail(f"{rest} != {t.dims[dim]}")
    _seen(low, op, t, (*t.dims[:dim], *sizes, *t.dims[dim + 1 :]))


def emit_squeeze(low: Lowering, op: Operator) -> None:
    """``squeeze`` of dimensions of known size; without dimensions, of all that are 1."""
    call = arguments(op)
    t = low.tensor(call["self"])
    wanted = call.get("dim", list(range(t.rank)))
    dims = [axis(t, one) for one in (wanted if isinstance(wanted, (list, tuple)) else [wanted])] if t.rank else []
    if any(isinstance(t.dims[dim], str) for dim in dims):
        raise Unsupported("a size that may be 1")
    stay = [dim for dim in range(t.rank) if dim not in dims or t.dims[dim] != 1]
    low.memory(t)
    strides = low.strides(t)
    dense = t.strides is None and t.straight
    order = tuple(stay.index(dim) for dim in t.order if dim in stay)
    low.give(op.outputs[0], low.view(t, [t.dims[dim] for dim in stay],
                                     None if dense else [strides[dim] for dim in stay], 0, order))  # fmt: skip


def emit_unsqueeze(low: Lowering, op: Operator) -> None:
    """``unsqueeze`` of any layout."""
    t = low.tensor(op.args[0])
    dim = axis(t, op.args[1], 1)
    low.memory(t)
    strides = low.strides(t)
    dims = (*t.dims[:dim], 1, *t.dims[dim:])
    low.give(op.outputs[0], low.view(t, dims, (*strides[:dim], 1, *strides[dim:]), 0, identity(t.rank + 1)))


def emit_slice(low: Lowering, op: Operator) -> None:
    """``x[start:end:step]``."""
    call = arguments(op)
    step = known(call["step"], "a step")
    t = low.tensor(op.args[0])
    dim = axis(t, call["dim"])
    n = t.dims[dim]
    low.memory(t)
    ends: list[Expr] = []
    for value, default in ((call["start"], 0), (call["end"], n)):
        if value is None or (type(value) is int and value >= 1 << 62):
            ends.append(default)
            continue
        name = size(low, low.integer(value).text)
        low.w.line(f"{name} += {name} < 0 ? {n} : 0;")
        low.w.line(f"{name} = {name} < 0 ? 0 : {name} > {n} ? {n} : {name};")
        ends.append(name)
    count = size(low, f"{ends[1]} > {ends[0]} ? ({ends[1]} - {ends[0]} + {step - 1}) / {step} : 0")
    strides = low.strides(t)
    dims = (*t.dims[:dim], count, *t.dims[dim + 1 :])
    steps = (*strides[:dim], low.w.arith("*", strides[dim], step), *strides[dim + 1 :])
    low.give(op.outputs[0], low.view(t, dims, steps, low.w.arith("*", ends[0], strides[dim]), t.order))


def emit_expand(low: Lowering, op: Operator) -> None:
    """``expand`` and ``expand_as`` of any layout."""
    t = low.tensor(op.args[0])
    wanted = low.tensor(op.args[1]).dims if "expand_as" in op.name else None
    given = op.args[1]
    low.memory(t)
    own, w = low.strides(t), low.w
    sizes = list(wanted) if wanted is not None else [
        -1 if type(one) is int and one == -1 else low.size(one) for one in _listed(given)]  # fmt: skip
    missing = len(sizes) - t.rank
    if missing < 0:
        raise Unsupported("sizes")
    dims: list[Expr] = []
    strides: list[Expr] = []
    for place, one in enumerate(sizes):
        if place < missing:
            if one == -1:
                raise Unsupported("sizes")
            if isinstance(one, str):
                w.bail(f"{one} < 0")
            dims.append(one)
            strides.append(0)
            continue
        before, stride = t.dims[place - missing], own[place - missing]
        if one in (-1, before):
            dims.append(before)
            strides.append(stride)
        elif before == 1:
            if isinstance(one, str):
                w.bail(f"{one} < 0")
            dims.append(one)
            strides.append(0)
        elif isinstance(before, str):  # 1, or as many
            w.bail(f"{before} != 1 && {before} != {one}")
            dims.append(one)
            strides.append(size(low, f"{before} == 1 ? 0 : {stride}"))
        else:
            w.bail(f"{before} != {one}")
            dims.append(before)
            strides.append(stride)
    low.give(op.outputs[0], low.view(t, dims, strides, 0, identity(len(dims))))


def _listed(given: object) -> Sequence[object]:
    if not isinstance(given, (list, tuple)):
        raise Unsupported("sizes")
    return given


def emit_same(low: Lowering, op: Operator) -> None:
    """``contiguous``, ``dropout`` in eval, ``view_as``: the elements as they are."""
    t = low.tensor(op.args[0])
    short = op.name.split(".")[1]
    if short in ("dropout", "feature_dropout", "alpha_dropout") and op.args[2] is not False:
        raise Unsupported("dropout in training")
    if short == "contiguous":
        whole = _as_dense(low, t)
        low.give(op.outputs[0], low.same(whole))
        if whole is not t:
            low.release(whole)
        return
    if short in ("view_as", "reshape_as"):
        _seen(low, op, t, low.tensor(op.args[1]).dims)
        return
    low.give(op.outputs[0], low.same(t))


def emit_repeat(low: Lowering, op: Operator) -> None:
    """``repeat``: the whole again and again along each dimension."""
    (t,) = ready(low, op.args[0])
    times = low.sizes(op.args[1])
    missing = len(times) - t.rank
    if missing < 0:
        raise Unsupported("fewer numbers than dimensions")
    own = (*[1] * missing, *t.dims)
    dims = [low.w.arith("*", a, b) for a, b in zip(own, times)]
    for one in times:
        if isinstance(one, str):
            low.w.bail(f"{one} < 0")
    made = low.fresh(t.dtype, dims)
    with each(low, dims) as places:
        source = [f"({place} % {dim})" for place, dim in zip(places, own)][missing:]
        low.w.line(f"{at(low, made, *places)} = {at(low, t, *source)};")
    low.give(op.outputs[0], made)


def emit_flip(low: Lowering, op: Operator) -> None:
    """``flip`` and ``roll``: the same elements at other places."""
    (t,) = ready(low, op.args[0])
    made = low.fresh(t.dtype, t.dims)
    if "flip" in op.name:
        turned = [axis(t, one) for one in _listed(op.args[1])]
        shift = dict.fromkeys(turned, 0)
    else:
        call = arguments(op)
        dims = [axis(t, one) for one in _listed(call["dims"])]
        amounts = [known(one, "a distance") for one in _listed(call["shifts"])]
        if not dims or len(set(dims)) < len(dims):
            raise Unsupported("all dimensions as one")
        turned, shift = [], dict(zip(dims, amounts))
    with each(low, t.dims) as places:
        source = []
        for dim, (place, n) in enumerate(zip(places, t.dims)):
            if dim in turned:
                source.append(f"({n} - 1 - {place})")
            elif dim in shift:
                source.append(f"(py_mod({place} - ({shift[dim]}), {n}))")
            else:
                source.append(place)
        low.w.line(f"{at(low, made, *places)} = {at(low, t, *source)};")
    low.give(op.outputs[0], made)


def emit_triangle(low: Lowering, op: Operator) -> None:
    """``tril`` and ``triu``."""
    call = arguments(op)
    (t,) = ready(low, call["self"])
    if t.rank < 2:
        raise Unsupported("a rank")
    made = low.fresh(t.dtype, t.dims)
    sign = "<=" if "tril" in op.name else ">="
    shift = low.integer(call["diagonal"]).text
    with each(low, t.dims) as places:
        low.w.line(f"{at(low, made, *places)} = {places[-1]} - {places[-2]} {sign} {shift} ? "
                   f"{at(low, t, *places)} : 0;")  # fmt: skip
    low.give(op.outputs[0], made)


def _parts(low: Lowering, op: Operator, dtype: torch.dtype) -> list[Tensor]:
    """Tensors that are put together, in memory."""
    return ready(low, *_listed(op.args[0]))


def _copied(low: Lowering, made: Tensor, one: Tensor, dims: Sequence[Expr], place: Callable[[list[str]], list[str]],
            ) -> None:  # fmt: skip
    with each(low, dims) as index:
        low.w.line(f"{at(low, made, *place(index))} = "
                   f"{convert(at(low, one, *index), one.dtype, made.dtype)};")  # fmt: skip


def emit_cat(low: Lowering, op: Operator) -> None:
    """``cat`` of tensors of any layout and dtype, or of a list's items."""
    dim = op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", 0)
    dtype, w = dtype_of(op.outputs[0]), low.w
    if not isinstance(op.args[0], (list, tuple)):
        _cat_items(low, op, low.items(op.args[0]), dim, dtype)
        return
    tensors = [one for one in _parts(low, op, dtype) if one.rank != 1 or one.dims[0] != 0]
    if not tensors:
        raise Unsupported("nothing")
    first = tensors[0]
    if any(one.rank != first.rank for one in tensors) or not first.rank:
        raise Unsupported("ranks that differ")
    along = axis(first, dim)
    total: Expr = first.dims[along]
    for one in tensors[1:]:
        for place in range(first.rank):
            if place != along and one.dims[place] != first.dims[place]:
                w.bail(f"{one.dims[place]} != {first.dims[place]}")
        total = w.arith("+", total, one.dims[along])
    made = low.fresh(dtype, (*first.dims[:along], total, *first.dims[along + 1 :]))
    start: Expr = 0
    for one in tensors:
        def moved(index: list[str], shift: Expr = start) -> list[str]:
            return [*index[:along], f"({index[along]} + {shift})", *index[along + 1 :]]

        _copied(low, made, one, one.dims, moved)
        start = w.arith("+", start, one.dims[along])
    low.give(op.outputs[0], made)


def _cat_items(low: Lowering, op: Operator, items: Items, dim: object, dtype: torch.dtype) -> None:
    w, n, like = low.w, items.n, items.item
    if not isinstance(like, Tensor) or like.dtype != dtype or not like.rank:
        raise Unsupported("numbers")
    along = axis(like, dim)
    low.flush()
    w.bail(f"!l{n}->len")
    sizes = [size(low, f"(l{n}->at)[{3 + place}]") for place in range(like.rank)]
    w.line(f"{sizes[along]} = 0;")
    with each(low, (f"l{n}->len",)) as (i,):
        w.line(f"const i64 *item = l{n}->at + {i} * {items.width};")
        w.bail("!item[0]")
        for place in range(like.rank):
            if place == along:
                w.line(f"{sizes[along]} += item[{3 + place}];")
            else:
                w.bail(f"item[{3 + place}] != {sizes[place]}")
    made = low.fresh(dtype, sizes)
    start = size(low, "0")
    with each(low, (f"l{n}->len",)) as (i,):
        item = read(low, items, f"l{n}->at + {i} * {items.width}")
        assert isinstance(item, Tensor)
        _copied(low, made, item, item.dims,
                lambda index: [*index[:along], f"({index[along]} + {start})", *index[along + 1 :]])  # fmt: skip
        w.line(f"{start} += {item.dims[along]};")
        low.release(item)
    low.give(op.outputs[0], made)


def emit_stack(low: Lowering, op: Operator) -> None:
    """``stack`` along any dimension."""
    dim = op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", 0)
    dtype, w = dtype_of(op.outputs[0]), low.w
    if not isinstance(op.args[0], (list, tuple)):
        items = low.items(op.args[0])
        like = items.item
        if not isinstance(like, Tensor) or like.dtype != dtype:
            raise Unsupported("numbers")
        along = axis(like, dim, 1)
        low.flush()
        n = items.n
        w.bail(f"!l{n}->len")
        sizes = [size(low, f"(l{n}->at)[{3 + place}]") for place in range(like.rank)]
        made = low.fresh(dtype, (*sizes[:along], size(low, f"l{n}->len"), *sizes[along:]))
        with each(low, (f"l{n}->len",)) as (i,):
            item = read(low, items, f"l{n}->at + {i} * {items.width}")
            assert isinstance(item, Tensor)
            w.bail(f"!b{item.n}")
            for own, wanted in zip(item.dims, sizes):
                w.bail(f"{own} != {wanted}")
            _copied(low, made, item, item.dims, lambda index: [*index[:along], i, *index[along:]])
            low.release(item)
        low.give(op.outputs[0], made)
        return
    tensors = _parts(low, op, dtype)
    first = tensors[0]
    along = axis(first, dim, 1)
    for one in tensors[1:]:
        if one.rank != first.rank:
            raise Unsupported("ranks that differ")
        for own, other in zip(one.dims, first.dims):
            if own != other:
                w.bail(f"{own} != {other}")
    made = low.fresh(dtype, (*first.dims[:along], len(tensors), *first.dims[along:]))
    for number, one in enumerate(tensors):

        def moved(index: list[str], number: int = number) -> list[str]:
            return [*index[:along], str(number), *index[along:]]

        _copied(low, made, one, one.dims, moved)
    low.give(op.outputs[0], made)


def emit_split(low: Lowering, op: Operator) -> None:
    """``split`` into parts of given sizes."""
    call = arguments(op)
    t = low.tensor(call["self"])
    dim = axis(t, call["dim"])
    sizes = low.sizes(call["split_sizes" if "split_sizes" in call else "split_size"])
    if len(sizes) != len(op.outputs):
        raise Unsupported("another number of parts")
    total: Expr = 0
    starts: list[Expr] = []
    for one in sizes:
        if isinstance(one, str):
            low.w.bail(f"{one} < 0")
        starts.append(total)
        total = low.w.arith("+", total, one)
    if total != t.dims[dim]:
        low.w.bail(f"{total} != {t.dims[dim]}")
    for start, length, out in zip(starts, sizes, op.outputs):
        low.give(out, views.narrow(low, t, dim, start, length))


def emit_narrow(low: Lowering, op: Operator) -> None:
    """``narrow``."""
    call = arguments(op)
    t = low.tensor(call["self"])
    dim = axis(t, call["dim"])
    start, length = low.size(call["start"]), low.size(call["length"])
    if isinstance(start, int) and start < 0:
        start = low.w.arith("+", t.dims[dim], start)
    low.w.bail(f"{start} < 0 || {length} < 0 || {start} > {t.dims[dim]} - {length}")
    low.give(op.outputs[0], views.narrow(low, t, dim, start, length))


def emit_movedim(low: Lowering, op: Operator) -> None:
    """``movedim`` and ``mT``: dimensions in another order."""
    t = low.tensor(op.args[0])
    if op.name.startswith("aten.movedim"):
        source, target = op.args[1], op.args[2]
        sources = [axis(t, one) for one in (source if isinstance(source, (list, tuple)) else [source])]
        targets = [axis(t, one) for one in (target if isinstance(target, (list, tuple)) else [target])]
        rest = iter(dim for dim in range(t.rank) if dim not in sources)
        places = [sources[targets.index(dim)] if dim in targets else next(rest) for dim in range(t.rank)]
    else:
        places = [*range(t.rank - 2), t.rank - 1, t.rank - 2]
    low.memory(t)
    strides = low.strides(t)
    order = tuple(places.index(dim) for dim in t.order)
    low.give(op.outputs[0], low.view(t, [t.dims[dim] for dim in places], [strides[dim] for dim in places], 0, order))


def emit_diagonal(low: Lowering, op: Operator) -> None:
    """``diagonal`` of matrices of known offset."""
    call = arguments(op)
    t = low.tensor(call["self"])
    a, b = axis(t, call["dim1"]), axis(t, call["dim2"])
    if call["offset"] != 0:
        raise Unsupported("an offset")
    low.memory(t)
    strides, w = low.strides(t), low.w
    rows, columns = t.dims[a], t.dims[b]
    count = rows if rows == columns else size(low, f"{rows} < {columns} ? {rows} : {columns}")
    stay = [dim for dim in range(t.rank) if dim not in (a, b)]
    steps = [*(strides[dim] for dim in stay), w.arith("+", strides[a], strides[b])]
    dims = [*(t.dims[dim] for dim in stay), count]
    low.give(op.outputs[0], low.view(t, dims, steps, 0, identity(len(dims))))


def first_of(*rules: Rule) -> Rule:
    """The first rule that takes an Operator."""

    def emit(low: Lowering, op: Operator) -> None:
        indent = low.w.indent
        for rule in rules[:-1]:
            try:
                rule(low, op)
                return
            except Unsupported:
                low.w.close(indent)
        rules[-1](low, op)

    return emit


NAMES: dict[Rule, list[str]] = {
    first_of(views.emit_view, emit_view): ["view.default", "_unsafe_view.default", "reshape.default"],
    first_of(views.emit_contiguous, emit_same): ["contiguous.default"],
    emit_same: ["dropout.default", "feature_dropout.default", "alpha_dropout.default", "view_as.default",
                "reshape_as.default"],
    emit_flatten: ["flatten.using_ints"],
    emit_unflatten: ["unflatten.int"],
    emit_squeeze: ["squeeze.default", "squeeze.dim", "squeeze.dims"],
    first_of(views.emit_unsqueeze, emit_unsqueeze): ["unsqueeze.default"],
    first_of(views.emit_slice, emit_slice): ["slice.Tensor"],
    emit_expand: ["expand.default", "expand_as.default"],
    emit_repeat: ["repeat.default"],
    emit_flip: ["flip.default", "roll.default"],
    emit_triangle: ["tril.default", "triu.default"],
    first_of(array.emit_cat, emit_cat): ["cat.default"],
    first_of(array.emit_stack, emit_stack): ["stack.default"],
    emit_split: ["split_with_sizes.default", "split.sizes"],
    emit_narrow: ["narrow.default"],
    emit_movedim: ["movedim.int", "movedim.intlist", "mT.default"],
    emit_diagonal: ["diagonal.default"],
}

__all__ = ["NAMES", "emit_update", "first_of", "may_copy"]
