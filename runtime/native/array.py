"""Lists: memory of C that grows, counted like tensors; changed in place where nothing else refers to it.

    array.append(%xs, %x)      ->      l4 = l_own(c, l3, 1); put x at l4->len++
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime.ir import Operator, Variable
from runtime.native.loops import item, new_items, read, write
from runtime.native.lowering import Lowering, alike
from runtime.native.nest import Nest
from runtime.native.values import Items, Number, Tensor, Unsupported
from runtime.native.views import axis


def emit(low: Lowering, op: Operator) -> None:
    """One list operator."""
    rule = _RULES.get(op.name.removeprefix("array."))
    if rule is None:
        raise Unsupported(op.name)
    rule(low, op)


def _new(low: Lowering, op: Operator) -> None:
    given = op.args[0]
    if not isinstance(given, (list, tuple)):
        raise Unsupported("a list made of something else")
    like = low.like(op.outputs[0].type)
    assert isinstance(like, Items)
    items = new_items(low, like.item)
    for one in given:
        _push(low, items, one)
    low.give(op.outputs[0], items)


def _push(low: Lowering, items: Items, operand: object) -> None:
    n = items.n
    value = low.value(operand)
    if isinstance(value, Tensor):
        low.memory(value)
    low.w.line(f"if (!(l{n} = l_own(c, l{n}, 1))) goto bail;")
    write(low, items, value, f"l{n}->at + l{n}->len * {items.width}")
    low.w.line(f"l{n}->len++;")


def _owned(low: Lowering, op: Operator) -> Items:
    """The first argument as a list that may be changed: the reference of an argument that dies is taken over."""
    base = op.args[0]
    items = low.items(base)
    n = low.w.fresh()
    low.w.declare("lst *", f"l{n}")
    made = Items(n, items.item)
    dies = isinstance(base, Variable) and base in low.live.dying[id(op)] and items.mine and (
        base not in low.live.pinned)  # fmt: skip
    low.w.line(f"l{n} = l{items.n}; " + (f"l{items.n} = 0;" if dies else f"l_ref(l{n});"))
    return made


def _append(low: Lowering, op: Operator) -> None:
    made = _owned(low, op)
    _push(low, made, op.args[1])
    low.give(op.outputs[0], made)


def _get(low: Lowering, op: Operator) -> None:
    low.give(op.outputs[0], item(low, low.items(op.args[0]), low.integer(op.args[1])))


def _len(low: Lowering, op: Operator) -> None:
    low.let(op.outputs[0], "int", f"l{low.items(op.args[0]).n}->len")


def emit_pop(low: Lowering, op: Operator) -> None:
    """``pop`` of any item; those behind it move up."""
    index = low.integer(op.args[1]).text if len(op.args) > 1 else "-1"
    made = _owned(low, op)
    w, n, width = low.w, made.n, made.width
    w.line(f"if (!(l{n} = l_own(c, l{n}, 0))) goto bail;")
    at = w.local("i64", "y")
    w.line(f"{at} = {index}; {at} += {at} < 0 ? l{n}->len : 0;")
    w.bail(f"{at} < 0 || {at} >= l{n}->len")
    value = read(low, made, f"l{n}->at + {at} * {width}")
    w.line(f"l{n}->len--;")
    w.line(f"for (; {at} < l{n}->len; {at}++) d2s_copy(l{n}->at + {at} * {width}, l{n}->at + ({at} + 1) * {width}, "
           f"8 * {width});")  # fmt: skip
    if isinstance(value, Tensor):
        w.line(f"d2s_put(c, b{value.n});")
    low.give(op.outputs[0], made)
    low.give(op.outputs[1], value)


def _set(low: Lowering, op: Operator) -> None:
    index = low.integer(op.args[1])
    value = low.value(op.args[2])
    if isinstance(value, Tensor):
        low.memory(value)
    made = _owned(low, op)
    w = low.w
    at = w.local("i64", "y")
    w.line(f"if (!(l{made.n} = l_own(c, l{made.n}, 0))) goto bail;")
    w.line(f"{at} = {index.text}; {at} += {at} < 0 ? l{made.n}->len : 0;")
    w.bail(f"{at} < 0 || {at} >= l{made.n}->len")
    words = f"l{made.n}->at + {at} * {made.width}"
    if isinstance(made.item, Tensor):
        old = w.local("buf *", "b")
        w.line(f"{old} = (buf *)*({words});")
        write(low, made, value, words)
        w.line(f"d2s_put(c, {old});")
    else:
        write(low, made, value, words)
    low.give(op.outputs[0], made)


def emit_stack(low: Lowering, op: Operator) -> None:
    """``stack`` of tensors, or of a list along the first dimension."""
    call_dim = op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", 0)
    given = op.args[0]
    w = low.w
    if isinstance(given, (list, tuple)):
        tensors = [low.tensor(one) for one in given]
        first = tensors[0]
        dim = axis(first, call_dim, 1)
        for one in tensors:
            low.memory(one)
            if one.dtype != first.dtype or one.dims != first.dims:
                raise Unsupported("tensors that differ")
        low.flush()
        made = low.fresh(first.dtype, (*first.dims[:dim], len(tensors), *first.dims[dim:]))
        strides = w.dense(made.dims)
        for number, one in enumerate(tensors):
            place = low.blank(first.dtype, first.dims)
            place.strides = None if dim == 0 else (*strides[:dim], *strides[dim + 1 :])
            w.line(f"p{place.n} = p{made.n} + {number} * {strides[dim]};")
            low.copy(place, one)
        low.give(op.outputs[0], made)
        return
    if call_dim != 0:
        raise Unsupported("another dimension")
    items = low.items(given)
    like = items.item
    if not isinstance(like, Tensor):
        raise Unsupported("numbers")
    low.flush()
    n = items.n
    w.bail(f"!l{n}->len")
    head = read(low, items, f"l{n}->at")
    assert isinstance(head, Tensor)
    w.bail(f"!b{head.n}")
    length = w.local("i64", "z")
    w.line(f"{length} = l{n}->len;")
    dims = tuple(w.kept(dim) for dim in head.dims)
    low.release(head)
    made = low.fresh(like.dtype, (length, *dims))
    size = w.product(dims)
    at = w.local("i64", "y")
    with w.block(f"for ({at} = 0; {at} < {length}; {at}++)"):
        item = read(low, items, f"l{n}->at + {at} * {items.width}")
        assert isinstance(item, Tensor)
        w.bail(f"!b{item.n}")
        for own, other in zip(dims, item.dims):
            if own != other:
                w.bail(f"{own} != {other}")
        w.line(f"d2s_copy(p{made.n} + {at} * {size}, p{item.n}, {size} * sizeof({made.ctype}));")
        low.release(item)
    low.give(op.outputs[0], made)


def emit_cat(low: Lowering, op: Operator) -> None:
    """``cat`` of tensors of one rank and dtype."""
    given = op.args[0]
    if not isinstance(given, (list, tuple)) or not given:
        raise Unsupported("a list")
    every = [low.tensor(one) for one in given]
    tensors = [one for one in every if one.rank != 1 or one.dims != (0,)]  # PyTorch leaves them out, whatever the rank
    if not tensors or len({one.dtype for one in every}) > 1:
        raise Unsupported("nothing, or other dtypes")
    first = tensors[0]
    dim = axis(first, op.args[1] if len(op.args) > 1 else op.kwargs.get("dim", 0))
    w = low.w
    total = first.dims[dim]
    for one in tensors:
        if one.dtype != first.dtype or one.rank != first.rank:
            raise Unsupported("tensors that differ")
    if all(one.order == (0, *range(2, one.rank), 1) for one in tensors) and first.rank > 3:
        raise Unsupported("a result that has its channels last")
    for one in tensors[1:]:
        for place in range(first.rank):
            if place != dim and one.dims[place] != first.dims[place]:
                if isinstance(one.dims[place], int) and isinstance(first.dims[place], int):
                    raise Unsupported("sizes that do not fit")
                w.bail(f"{one.dims[place]} != {first.dims[place]}")
        total = w.arith("+", total, one.dims[dim])
    dims = (*first.dims[:dim], total, *first.dims[dim + 1 :])
    made = low.fresh(first.dtype, dims)
    strides = w.dense(dims)
    start: object = 0
    for one in tensors:
        part_dims = (*first.dims[:dim], one.dims[dim], *first.dims[dim + 1 :])
        part = low.blank(first.dtype, part_dims)
        offset = w.arith("*", start, strides[dim])  # type: ignore[arg-type]
        w.line(f"p{part.n} = p{made.n} + {offset};")
        part.strides = None if dim == 0 else strides
        nest = low.nest
        if nest is not None and one.pending and nest.holds(one) and nest.dims == part_dims == one.dims and (
                nest.order == part.order):  # fmt: skip
            nest.store(low, part, nest.load(low, one))
            nest.finish_late(made)
            start = w.arith("+", start, one.dims[dim])  # type: ignore[arg-type]
            continue
        low.memory(one)
        if one.strides is None and dim == 0:
            low.copy(part, one)
        else:
            part.strides = strides
            nest = Nest(part_dims, part.order)
            nest.store(low, part, nest.load(low, one))
            nest.write(low)
        start = w.arith("+", start, one.dims[dim])  # type: ignore[arg-type]
    low.give(op.outputs[0], made)


def _extend(low: Lowering, op: Operator) -> None:
    """``extend`` and ``concat``: the items of another list, put behind one's own."""
    other = low.items(op.args[1])
    made = _owned(low, op)
    if not alike(other, made):
        raise Unsupported("a list of other items")
    w, n, m = low.w, made.n, other.n
    count, at = w.local("i64", "z"), w.local("i64", "y")
    w.line(f"{count} = l{m}->len;")  # it may be the very same list
    w.line(f"if (!(l{n} = l_own(c, l{n}, {count}))) goto bail;")
    w.line(f"d2s_copy(l{n}->at + l{n}->len * {made.width}, l{m}->at, 8 * {count} * {made.width});")
    if isinstance(made.item, Tensor):
        w.line(f"for ({at} = 0; {at} < {count}; {at}++) d2s_ref((buf *)l{n}->at[(l{n}->len + {at}) * {made.width}]);")
    w.line(f"l{n}->len += {count};")
    low.give(op.outputs[0], made)


def _slice(low: Lowering, op: Operator) -> None:
    """A part of a list, as Python clips it."""
    where = op.args[1]
    step = where.step if isinstance(where, slice) and where.step is not None else 1
    if not isinstance(where, slice) or type(step) is not int or not 0 < abs(step) < 2**60:
        raise Unsupported("a slice with a step that only the run knows")
    items = low.items(op.args[0])
    w, length, width = low.w, f"l{items.n}->len", items.width
    least, most = ("0", length) if step > 0 else ("-1", f"{length} - 1")
    ends: list[str] = []
    for value, default in zip((where.start, where.stop), (least, most)[:: 1 if step > 0 else -1]):
        name = w.local("i64", "y")
        if value is None:
            w.line(f"{name} = {default};")
        else:
            w.line(f"{name} = {low.integer(value).text}; {name} += {name} < 0 ? {length} : 0;")
            w.line(f"{name} = {name} < {least} ? {least} : {name} > {most} ? {most} : {name};")
        ends.append(name)
    start, end = ends
    made = new_items(low, items.item)
    first, last, stride = (start, end, step) if step > 0 else (end, start, -step)
    w.line(f"{end} = {last} > {first} ? ({last} - {first} - 1) / {stride} + 1 : 0;")
    w.line(f"if (!(l{made.n} = l_own(c, l{made.n}, {end}))) goto bail;")
    if step == 1:
        w.line(f"d2s_copy(l{made.n}->at, l{items.n}->at + {start} * {width}, 8 * {end} * {width});")
        w.line(f"l{made.n}->len = {end};")
    else:
        w.line(f"for (; l{made.n}->len < {end}; l{made.n}->len++) d2s_copy(l{made.n}->at + l{made.n}->len * {width}, "
               f"l{items.n}->at + ({start} + l{made.n}->len * {step}) * {width}, 8 * {width});")  # fmt: skip
    if isinstance(items.item, Tensor):
        w.line(f"for ({start} = 0; {start} < {end}; {start}++) "
               f"d2s_ref((buf *)l{made.n}->at[{start} * {made.width}]);")  # fmt: skip
    low.give(op.outputs[0], made)


@contextmanager
def _as_long(low: Lowering, op: Operator, other: Items) -> Iterator[tuple[Items, str]]:
    """The result, as long as another list, and C that is run for each item: the item's number."""
    like = low.like(op.outputs[0].type)
    assert isinstance(like, Items)
    made = new_items(low, like.item)
    low.w.line(f"if (!(l{made.n} = l_own(c, l{made.n}, l{other.n}->len))) goto bail;")
    with low.w.block(f"for (; l{made.n}->len < l{other.n}->len; l{made.n}->len++)"):
        yield made, f"l{made.n}->len"
    low.give(op.outputs[0], made)


def _fill(low: Lowering, op: Operator) -> None:
    """A list as long as another, of one item."""
    value = low.value(op.args[1])
    if isinstance(value, Tensor):
        low.memory(value)
    with _as_long(low, op, low.items(op.args[0])) as (made, at):
        write(low, made, value, f"l{made.n}->at + {at} * {made.width}")


def _lookup(low: Lowering, op: Operator) -> None:
    """What stands in a table of constants at each of the list's numbers."""
    items, table = low.items(op.args[0]), op.args[1]
    assert isinstance(table, (list, tuple))
    with _as_long(low, op, items) as (made, at):
        key = read(low, items, f"l{items.n}->at + {at}")
        assert isinstance(key, Number)
        held = {place: number for place, number in enumerate(table) if number is not None}
        found = "".join(f"{key.text} == {place} ? {number} : " for place, number in held.items())
        there = " || ".join(f"{key.text} == {place}" for place in held) or "0"
        has = low.w.local("i64", "h")
        low.w.line(f"{has} = {key.has} && ({there});")
        write(low, made, Number("int", f"((i64)({found}0))", has), f"l{made.n}->at + {at}")


_RULES = {"new": _new, "append": _append, "get": _get, "load": _get, "len": _len, "pop": emit_pop, "set": _set,
          "store": _set, "extend": _extend, "concat": _extend, "slice": _slice, "fill": _fill,
          "lookup": _lookup}  # fmt: skip

__all__ = ["emit", "emit_pop", "emit_cat", "emit_stack"]
