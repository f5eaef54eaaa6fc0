"""``while_loop`` and ``scan``: C's ``for``. What is carried has one slot each, assigned at the end of an iteration.

What a slot is like (dense, never None) is taken for granted until an iteration gives something else; then the region
is written again without that (``Retry``).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from runtime.ir import UNDEF, Block, Operand, Operator, TensorType, Variable
from runtime.native.branches import flag_of, spill
from runtime.native.chunks import rows_of_scan, rows_of_while
from runtime.native.lowering import Lowering, Retry
from runtime.native.values import (
    GONE,
    UNKNOWN,
    Assumed,
    Items,
    Nothing,
    Number,
    Tensor,
    Unsupported,
    Value,
    identity,
)
from runtime.native.views import select
from runtime.ops import scan


class _Slots:
    """What a loop carries."""

    def __init__(self, low: Lowering, op: Operator, first: Sequence[Operand], heads: Sequence[Variable]) -> None:
        self.low, self.op = low, op
        self.slots: list[Value] = []
        for place, (operand, head) in enumerate(zip(first, heads)):
            value = low.value(operand)
            slot = low.slot(value, head.type)
            self.slots.append(slot)
            low.assign(slot, value)
            assumed = low.assumed.setdefault((id(op), place), Assumed())
            self._take(slot, value, head, assumed)

    def _take(self, slot: Value, value: Value, head: Variable, assumed: Assumed) -> None:
        """What is certain of a slot while the loop runs."""
        if isinstance(slot, Number):
            slot.has = "1" if assumed.has and isinstance(value, Number) and value.has == "1" else slot.has
            return
        if isinstance(slot, Items):
            slot.null = assumed.null or isinstance(value, Nothing) or value.null  # type: ignore[union-attr]
            return
        assert isinstance(slot, Tensor)
        slot.null = assumed.null or not isinstance(value, Tensor) or value.null
        if isinstance(value, Tensor) and (value.strides is not None or not value.straight):
            assumed.contiguous = False
        if not assumed.contiguous:
            slot.strides = tuple(f"s{slot.n}_{dim}" for dim in range(slot.rank))
            known = value.order if isinstance(value, Tensor) else identity(slot.rank)
            slot.order = known if assumed.order is None else assumed.order
        told = head.type.shape if isinstance(head.type, TensorType) else None
        dims = list(slot.dims)
        for dim in range(slot.rank):
            size = told[dim] if told is not None and len(told) == slot.rank else None
            if isinstance(size, int) and assumed.fixed.get(dim, True):
                dims[dim] = size
                if isinstance(value, Tensor) and value.dims[dim] != size:
                    self.low.w.bail(f"b{slot.n} && d{slot.n}_{dim} != {size}")
        slot.dims = tuple(dims)

    def carry(self, yields: Sequence[Operand]) -> None:
        """The values of the next iteration, all at once."""
        low = self.low
        low.flush()
        values = [low.value(one) for one in yields]
        following: list[tuple[Value, Value]] = []
        for place, (slot, value) in enumerate(zip(self.slots, values)):
            self._check(place, slot, value)
            if value is slot:
                continue
            if isinstance(value, Tensor):
                low.memory(value)
            following.append((slot, value))
        # Values are read before any slot is written: each goes through locals of its own.
        staged: list[tuple[Value, Value]] = []
        busy = {id(slot) for slot, _ in following}
        for slot, value in following:
            if id(value) in busy or isinstance(value, Number):
                staged.append((slot, low.staged(value, slot)))
            else:
                staged.append((slot, value))
        for slot, value in staged:
            old = _old(low, slot)
            low.assign(slot, value)
            if isinstance(slot, Tensor):
                low.w.line(f"d2s_put(c, {old});")
                for dim in range(slot.rank):
                    if isinstance(slot.dims[dim], int) and isinstance(value, Tensor) and (
                            value.dims[dim] != slot.dims[dim]):
                        low.w.bail(f"b{slot.n} && d{slot.n}_{dim} != {slot.dims[dim]}")
            elif isinstance(slot, Items):
                low.w.line(f"l_put(c, {old});")
        for (_, value), (_, original) in zip(staged, following):
            if value is not original:
                low.release(value)

    def _check(self, place: int, slot: Value, value: Value) -> None:
        """Errors raised: Retry if an iteration gives what was not taken for granted."""
        assumed = self.low.assumed[id(self.op), place]
        if isinstance(slot, Number):
            if slot.has == "1" and not (isinstance(value, Number) and value.has == "1"):
                assumed.has = False
                raise Retry
            return
        if isinstance(slot, Nothing) or isinstance(value, Number):
            raise Unsupported("another kind of value")
        if not slot.null and (isinstance(value, Nothing) or value.null):
            assumed.null = True
            raise Retry
        if not isinstance(slot, Tensor) or not isinstance(value, Tensor):
            return
        dense = value.strides is None and value.straight
        if slot.strides is None and not dense:
            assumed.contiguous = False
            assumed.order = value.order
            raise Retry
        if slot.strides is not None and value.order != slot.order:
            if slot.order == ():
                return
            assumed.order = ()
            raise Retry
        for dim in range(slot.rank):
            own, other = slot.dims[dim], value.dims[dim]
            if isinstance(own, int) and isinstance(other, int) and own != other:
                assumed.fixed[dim] = False
                raise Retry


def _old(low: Lowering, slot: Value) -> str:
    if isinstance(slot, Tensor):
        name = low.w.local("buf *", "b")
        low.w.line(f"{name} = b{slot.n};")
        return name
    if isinstance(slot, Items):
        name = low.w.local("lst *", "l")
        low.w.line(f"{name} = l{slot.n};")
        return name
    return ""


def emit_while(low: Lowering, op: Operator) -> None:
    """``for (;;) { test; if (!flag) break; body; slots = yields; }``"""
    test, body = op.blocks
    low.flush()
    spill(low, op.blocks)
    live = low.live
    start = low.w.count
    carried = _Slots(low, op, op.args, test.args)
    for slot, *variables in zip(carried.slots, test.args, body.args, op.outputs):
        for var in variables:
            low.give(var, slot)
    captured = {var for block in op.blocks for var in live.captured(block)}
    dying = live.dying[id(op)]
    low.drop(var for var in dying if var not in captured)
    limit = op.attrs.get("max_iterations")
    counter = low.w.local("i64", "y")
    low.w.line(f"{counter} = 0;")
    with low.loop(start, body, rows_of_while(op)), low.w.block("for (;;)"):
        low.enter(test)
        low.operators(test.ops)
        flag = low.w.local("i64", "n")
        low.w.line(f"{flag} = {flag_of(low, test.yields[0])} != 0;")
        low.flush()
        at_exit = list(live.at_exit[id(test)])
        with low.w.block(f"if (!{flag})"):
            low.drop(var for var in at_exit if low.values.get(var) not in carried.slots)
            low.w.line("break;")
        low.drop(var for var in at_exit if low.values.get(var) not in carried.slots)
        if limit is not None:
            low.w.bail(f"{counter} == {limit}")
        low.w.line(f"{counter}++;")
        low.w.bail("d2s_spin(c)")
        low.enter(body)
        low.operators(body.ops)
        _carry_on(low, body, carried, body.yields)
    low.drop([var for var in dying if var in captured])
    low.drop(live.unread[id(op)])


def _carry_on(low: Lowering, body: Block, carried: _Slots, yields: Sequence[Operand]) -> None:
    carried.carry(yields)
    kept = {id(slot) for slot in carried.slots}
    low.drop(var for var in low.live.at_exit[id(body)] if id(low.values.get(var)) not in kept)


def emit_scan(low: Lowering, op: Operator) -> None:
    """A loop of known length, with slices of columns and rows that are put together."""
    (body,) = op.blocks
    live, w = low.live, low.w
    low.flush()
    spill(low, op.blocks)
    count = scan.carried(op)
    start = w.count
    index, *args = body.args
    reverse = bool(op.attrs.get("reverse"))
    given = low.integer(op.args[0])
    length = w.local("i64", "z")
    w.line(f"{length} = {given.text} > 0 ? {given.text} : 0;")
    carried = _Slots(low, op, op.args[1 : 1 + count], args[:count])
    for slot, *variables in zip(carried.slots, args, op.outputs):
        for var in variables:
            low.give(var, slot)
    columns: list[Tensor | Items] = []
    for operand in op.args[1 + count :]:
        column = low.value(operand)
        if not isinstance(column, (Tensor, Items)):
            raise Unsupported("a column")
        if column.null:
            w.bail(f"{length} && !{'b' if isinstance(column, Tensor) else 'l'}{column.n}")
        if isinstance(column, Tensor):
            low.memory(column)
            w.bail(f"{length} > {column.dims[0]}")
        else:
            w.bail(f"{length} > l{column.n}->len")
        columns.append(column)
    made = [_Made(low, out, length, reverse) for out in op.outputs[count:]]
    captured = set(live.captured(body))
    dying = live.dying[id(op)]
    held = {id(column) for column in columns}
    low.drop(var for var in dying if var not in captured and id(low.values.get(var)) not in held)
    step, at = w.local("i64", "y"), w.local("i64", "n")
    with low.loop(start, body, rows_of_scan(op)), w.block(f"for ({step} = 0; {step} < {length}; {step}++)"):
        w.line(f"{at} = {f'{length} - 1 - {step}' if reverse else step};")
        w.bail("d2s_spin(c)")
        low.give(index, Number("int", at))
        for arg, column in zip(args[count:], columns):
            number = Number("int", at)
            value: Value = select(low, column, 0, number) if isinstance(column, Tensor) else item(low, column, number)
            low.give(arg, value)
        low.enter(body)
        low.operators(body.ops)
        low.flush()
        for one, value_ in zip(made, body.yields[count:]):
            one.put(low.value(value_), at, step)
        _carry_on(low, body, carried, body.yields[:count])
    for one in made:
        one.finish()
    low.drop([var for var in dying if var in captured or id(low.values.get(var)) in held])
    low.drop(live.unread[id(op)])


def item(low: Lowering, items: Items, index: Number) -> Value:
    """An item of a list; an index that is out of range ends the attempt."""
    w = low.w
    at = w.local("i64", "y")
    w.line(f"{at} = {index.text}; {at} += {at} < 0 ? l{items.n}->len : 0;")
    w.bail(f"{at} < 0 || {at} >= l{items.n}->len")
    return read(low, items, f"l{items.n}->at + {at} * {items.width}")


def read(low: Lowering, items: Items, words: str) -> Value:
    """What stands at an item's words."""
    w = low.w
    like = items.item
    if isinstance(like, Number):
        name = w.local("double" if like.kind == "float" else "i64", "n")
        w.line(f"{name} = {f'as_double(*({words}))' if like.kind == 'float' else f'*({words})'};")
        if low.alone:
            return Number(like.kind, name)
        has = w.local("i64", "h")
        w.line(f"{has} = *({words}) != {GONE}LL;")
        return Number(like.kind, name, has)
    slot = low.slot(like, None)
    assert isinstance(slot, Tensor)
    rank = slot.rank
    at = w.local("i64 *", "w")
    parts = [f"{at} = {words}; b{slot.n} = (buf *){at}[0]; d2s_ref(b{slot.n});",
             f"p{slot.n} = ({slot.ctype} *){at}[1]; o{slot.n} = {at}[2];"]  # fmt: skip
    for dim in range(rank):
        parts.append(f"d{slot.n}_{dim} = {at}[{3 + dim}]; s{slot.n}_{dim} = {at}[{3 + rank + dim}];")
    w.line(" ".join(parts))
    slot.null = like.null
    slot.dims = tuple(dim if dim != UNKNOWN else f"d{slot.n}_{place}" for place, dim in enumerate(like.dims))
    return slot


def write(low: Lowering, items: Items, value: Value, words: str) -> None:
    """Put a value into an item's words, with a reference of its own."""
    w = low.w
    like = items.item
    if isinstance(like, Number):
        if isinstance(value, Nothing):  # nobody reads it in a library: another list says which item is a number
            w.line(f"*({words}) = {'0' if low.alone else f'{GONE}LL'};")
            return
        if not isinstance(value, Number) or value.kind != like.kind:
            raise Unsupported("another kind of number")
        word = f"as_word({value.text})" if like.kind == "float" else value.text
        if low.alone:
            w.line(f"*({words}) = {word};")
            return
        if like.kind != "bool":
            w.bail(f"{'' if value.has == '1' else f'{value.has} && '}{word} == {GONE}LL")
        w.line(f"*({words}) = {word if value.has == '1' else f'{value.has} ? {word} : {GONE}LL'};")
        return
    if isinstance(value, Nothing):
        w.line(f"memset({words}, 0, 8 * {items.width});")
        return
    if not isinstance(value, Tensor) or value.dtype != like.dtype or value.rank != like.rank:
        raise Unsupported("another tensor")
    low.memory(value)
    if value.strides is not None or not value.straight:
        raise Unsupported("an item that is not dense")
    for own, known in zip(value.dims, like.dims):
        if known not in (UNKNOWN, own):
            w.bail(f"{own} != {known}")
    strides = low.strides(value)
    at = w.local("i64 *", "w")
    parts = [f"{at} = {words}; {at}[0] = (i64)b{value.n}; d2s_ref(b{value.n}); {at}[1] = (i64)p{value.n}; "
             f"{at}[2] = o{value.n};"]  # fmt: skip
    for dim in range(value.rank):
        parts.append(f"{at}[{3 + dim}] = {value.dims[dim]}; {at}[{3 + value.rank + dim}] = {strides[dim]};")
    w.line(" ".join(parts))


def new_items(low: Lowering, like: Value) -> Items:
    """An empty list of items like one. All that is certain of an item is its dtype and rank."""
    if not isinstance(like, (Tensor, Number)):
        raise Unsupported("a list of lists")
    if isinstance(like, Tensor):
        like = loose(like)
    n = low.w.fresh()
    low.w.declare("lst *", f"l{n}")
    items = Items(n, like)
    low.w.line(f"if (!(l{n} = l_new(c, {items.width}, {int(isinstance(like, Tensor))}, 8))) goto bail;")
    return items


def loose(t: Tensor) -> Tensor:
    """The form of an item: dense, and perhaps None; of its sizes those are certain that the type says."""
    dims = tuple(dim if isinstance(dim, int) else UNKNOWN for dim in t.dims)
    return Tensor(0, t.dtype, dims, order=identity(t.rank), null=True)


class _Made:
    """What a scan makes of its items: a tensor of rows, or a list."""

    def __init__(self, low: Lowering, out: Variable, length: str, reverse: bool) -> None:
        self.low, self.out, self.length, self.reverse = low, out, length, reverse
        self.rows: Tensor | None = None
        self.items: Items | None = None
        if not isinstance(out.type, TensorType):
            like = low.like(out.type)
            assert isinstance(like, Items)
            self.items = new_items(low, like.item)
            low.w.line(f"if (!(l{self.items.n} = l_own(c, l{self.items.n}, {length}))) goto bail;")
        else:
            like = low.like(TensorType(out.type.dtype, out.type.shape))
            made = low.slot(like, None)
            assert isinstance(made, Tensor) and made.rank > 0
            self.rows = made
            low.w.line(f"b{made.n} = 0;")

    def put(self, value: Value, at: str, step: str) -> None:
        """The item of one iteration."""
        low, w = self.low, self.low.w
        if self.items is not None:
            n, width = self.items.n, self.items.width
            place = at if self.reverse else f"l{n}->len"
            write(low, self.items, value, f"l{n}->at + {place} * {width}")
            w.line(f"l{n}->len++;")
            return
        assert self.rows is not None
        if not isinstance(value, Tensor) or value.dtype != self.rows.dtype or value.rank != self.rows.rank - 1:
            raise Unsupported("another row")
        if value.null:
            w.bail(f"!b{value.n}")
        low.memory(value)
        if not value.straight:
            raise Unsupported("a layout")
        rows = self.rows
        width = torch.empty((), dtype=rows.dtype).element_size()
        size = w.product(value.dims)
        with w.block(f"if (!b{rows.n})"):
            w.line(f"if (!(b{rows.n} = d2s_new(c, {self.length} * {size} * {width}))) goto bail;")
            w.line(f"p{rows.n} = ({rows.ctype} *)b{rows.n}->data; o{rows.n} = ++objects; "
                   f"d{rows.n}_0 = {self.length};")  # fmt: skip
            for dim, own in enumerate(value.dims):
                w.line(f"d{rows.n}_{dim + 1} = {own};")
        for dim, own in enumerate(value.dims):
            if not isinstance(own, int):
                w.bail(f"d{rows.n}_{dim + 1} != {own}")
        row = low.blank(rows.dtype, value.dims)
        w.line(f"p{row.n} = p{rows.n} + {at} * {size};")
        low.copy(row, value)
        self.rows.dims = (self.length, *(own if isinstance(own, int) else f"d{rows.n}_{dim + 1}"
                                         for dim, own in enumerate(value.dims)))  # fmt: skip

    def finish(self) -> None:
        """The result. A list that was filled from its end is as long as the loop."""
        if self.items is not None:
            self.low.give(self.out, self.items)
        else:
            assert self.rows is not None
            self.rows.null = True
            self.low.give(self.out, self.rows)


__all__ = ["UNDEF", "emit_scan", "emit_while", "item", "loose", "new_items", "read", "write"]
