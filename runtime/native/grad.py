"""Gradients that may be None: sums, accumulators and their lists.

    grad.sum(%a, %b)      ->      if (!b3) y = b; else if (!b4) y = a; else y = a + b
"""

from __future__ import annotations

import torch

from runtime.ir import Operator, Variable
from runtime.native import array
from runtime.native.loops import item
from runtime.native.lowering import Lowering, Part
from runtime.native.nest import Nest
from runtime.native.pointwise import compute
from runtime.native.products import gemm
from runtime.native.scatter import put, zero
from runtime.native.values import Items, Nothing, Tensor, Unsupported, Value
from runtime.native.views import select


def emit(low: Lowering, op: Operator) -> None:
    """One gradient operator."""
    rule = _RULES.get(op.name.removeprefix("grad."))
    if rule is None:
        raise Unsupported(op.name)
    rule(low, op)


def _optional(low: Lowering, operand: object) -> Tensor | Nothing:
    found = low.value(operand)
    if isinstance(found, (Tensor, Nothing)):
        return found
    raise Unsupported("no gradient")


def _passed(low: Lowering, value: Tensor | Nothing) -> Value:
    return low.same(value) if isinstance(value, Tensor) else value


def _sum(low: Lowering, op: Operator) -> None:
    a, b = (_optional(low, arg) for arg in op.args)
    if isinstance(a, Nothing) or isinstance(b, Nothing):
        low.give(op.outputs[0], _passed(low, b if isinstance(a, Nothing) else a))
        return
    if a.dtype != b.dtype or a.rank != b.rank:
        raise Unsupported("gradients that differ")
    if not a.null and not b.null:
        low.give(op.outputs[0], compute(
            low, op.outputs[0], [a, b], a.dtype, lambda nest: f"{nest.load(low, a)} + {nest.load(low, b)}"))
        return
    low.memory(a)
    low.memory(b)
    low.flush()
    out = low.slot(a, None)
    given: list[Value] = []
    paths = [(f"if (!b{a.n})", b), (f"else if (!b{b.n})", a)] if a.null and b.null else (
        [(f"if (!b{a.n})", b)] if a.null else [(f"if (!b{b.n})", a)])  # fmt: skip
    for header, value in paths:
        with low.w.block(header):
            low.assign(out, value)
            given.append(value)
    with low.w.block("else"):
        left, right = _sure(a), _sure(b)
        made = compute(low, op.outputs[0], [left, right], a.dtype,
                       lambda nest: f"{nest.load(low, left)} + {nest.load(low, right)}")  # fmt: skip
        low.memory(made)
        low.flush()
        low.assign(out, made)
        low.release(made)
        given.append(made)
    settled = low.settle(out, given)
    assert isinstance(settled, Tensor)
    settled.null = a.null and b.null
    low.give(op.outputs[0], settled)


def _sure(t: Tensor) -> Tensor:
    """The same tensor where it is known to be there."""
    return Tensor(t.n, t.dtype, t.dims, t.strides, t.order, False, t.mine)


def _accumulate(low: Lowering, op: Operator) -> None:
    part = low.parts.pop(op.args[1], None) if isinstance(op.args[1], Variable) else None
    if part is not None:
        _accumulate_part(low, op, part)
        return
    total, grad = (_optional(low, arg) for arg in op.args)
    w = low.w
    if isinstance(grad, Nothing):
        low.give(op.outputs[0], _passed(low, total))
        return
    low.memory(grad)
    if isinstance(total, Tensor):
        low.memory(total)
    low.flush()
    if not grad.straight or (isinstance(total, Tensor) and (
            total.strides is not None or not total.straight or total.dtype != grad.dtype)):  # fmt: skip
        raise Unsupported("a layout")
    out = low.slot(grad, None)
    assert isinstance(out, Tensor)
    given: list[Value] = []

    def begin() -> None:
        sure = _sure(grad)
        made = low.fresh(grad.dtype, grad.dims)
        low.copy(made, sure)
        low.assign(out, made)
        low.release(made)
        given.append(made)

    def add() -> None:
        assert isinstance(total, Tensor)
        sure, old = _sure(grad), _sure(total)
        made = _own(low, op, old)
        for own, other in zip(made.dims, sure.dims):
            if own != other:
                w.bail(f"{own} != {other}")
        nest = Nest(made.dims, made.order)
        nest.store(low, made, f"{nest.load(low, old)} + {nest.load(low, sure)}")
        nest.write(low)
        low.assign(out, made)
        low.release(made)
        given.append(made)

    def keep() -> None:
        low.assign(out, total)
        given.append(total)

    headers = []
    if grad.null:
        headers.append((f"!b{grad.n}", keep))
    if isinstance(total, Nothing):
        headers.append(("1", begin))
    else:
        if total.null:
            headers.append((f"!b{total.n}", begin))
        headers.append(("1", add))
    for number, (condition, make) in enumerate(headers):
        with w.block(("else " if number else "") + f"if ({condition})"):
            make()
    settled = low.settle(out, given)
    assert isinstance(settled, Tensor)
    settled.null = grad.null and (isinstance(total, Nothing) or total.null)
    low.give(op.outputs[0], settled)


def _own(low: Lowering, op: Operator, total: Tensor) -> Tensor:
    """A running total that may be written: itself where nothing else refers to it, or a copy."""
    w = low.w
    made = low.blank(total.dtype, total.dims)
    if _dies(low, op, 0) and total.mine:
        with w.block(f"if (b{total.n}->rc == 1 && b{total.n}->src < 0)"):
            w.line(f"b{made.n} = b{total.n}; b{made.n}->rc++; p{made.n} = p{total.n}; o{made.n} = ++objects;")
        with w.block("else"):
            low.allocate(made)
            low.copy(made, total)
    else:
        low.allocate(made)
        low.copy(made, total)
    return made


def _accumulate_part(low: Lowering, op: Operator, part: Part) -> None:
    """Add what is zero but for one part."""
    total = _optional(low, op.args[0])
    like = Tensor(0, part.grad.dtype, part.dims, order=tuple(range(len(part.dims))))
    if isinstance(total, Tensor):
        low.memory(total)
        if total.strides is not None or not total.straight or total.dtype != like.dtype or total.rank != like.rank:
            raise Unsupported("a layout")
    low.flush()
    w = low.w
    out = low.slot(like, None)
    given: list[Value] = []
    for begins in (True, False):
        if begins and isinstance(total, Tensor) and not total.null or not begins and isinstance(total, Nothing):
            continue
        header = "if (1)" if isinstance(total, Nothing) or not total.null else (
            f"if (!b{total.n})" if begins else "else")  # fmt: skip
        with w.block(header):
            if begins:
                made = low.fresh(like.dtype, like.dims)
                zero(low, made)
            else:
                assert isinstance(total, Tensor)
                for own, other in zip(total.dims, like.dims):
                    if own != other:
                        w.bail(f"{own} != {other}")
                made = _own(low, op, _sure(total))
            put(low, made, part, add=not begins)
            low.assign(out, made)
            low.release(made)
            given.append(made)
    low.release(part.grad)
    for numbers in part.rows:
        low.release(numbers)
    low.give(op.outputs[0], low.settle(out, given))


def _dies(low: Lowering, op: Operator, place: int) -> bool:
    operand = op.args[place]
    return isinstance(operand, Variable) and operand in low.live.dying[id(op)] and operand not in low.live.pinned


def _accumulate_product(low: Lowering, op: Operator) -> None:
    total = _optional(low, op.args[0])
    a, b = low.tensor(op.args[1]), low.tensor(op.args[2])
    if a.dtype != b.dtype or a.dtype not in (torch.float32, torch.float64) or a.rank != 2 or b.rank != 2:
        raise Unsupported("these dtypes")
    for one in (a, b, total):
        if isinstance(one, Tensor):
            low.memory(one)
    low.flush()
    w = low.w
    if a.dims[1] != b.dims[0]:
        w.bail(f"{a.dims[1]} != {b.dims[0]}")
    made = low.slot(a, None)
    assert isinstance(made, Tensor)
    for dim, size in enumerate((a.dims[0], b.dims[1])):
        w.line(f"d{made.n}_{dim} = {size};")
    made.dims = (a.dims[0], b.dims[1])
    if isinstance(total, Tensor):
        if total.strides is not None or not total.straight:
            raise Unsupported("a layout")
        mine = _dies(low, op, 0) and total.mine
        first = f"b{total.n} && b{total.n}->rc == 1 && b{total.n}->src < 0" if mine else "0"
        with w.block(f"if ({first})"):
            w.line(f"b{made.n} = b{total.n}; b{made.n}->rc++; p{made.n} = p{total.n}; o{made.n} = ++objects;")
        with w.block(f"else if (b{total.n})"):
            low.allocate(made)
        with w.block(f"if (b{total.n})"):
            for own, other in zip(total.dims, made.dims):
                if own != other:
                    w.bail(f"{own} != {other}")
            gemm(low, made, a, b, (f"p{total.n}", made.dims[1]))
        header = "else"
    else:
        header = "if (1)"
    with w.block(header):
        low.allocate(made)
        gemm(low, made, a, b)
    low.give(op.outputs[0], made)


def _zeros_if_none(low: Lowering, op: Operator) -> None:
    grad = _optional(low, op.args[0])
    if op.args[3] != torch.device("cpu"):
        raise Unsupported("a device")
    if isinstance(grad, Tensor) and not grad.null:
        low.give(op.outputs[0], low.same(grad) if not grad.pending and not grad.reg else _again(low, grad))
        return
    dims = low.sizes(op.args[1])
    dtype = op.args[2]
    low.flush()
    if not isinstance(dtype, torch.dtype):
        raise Unsupported("a dtype")
    made = low.blank(dtype, dims)
    if isinstance(grad, Nothing):
        low.allocate(made)
        low.w.line(f"d2s_zero(p{made.n}, ({low.w.product(dims)}) * sizeof({made.ctype}));")
        low.give(op.outputs[0], made)
        return
    if grad.dtype != dtype or grad.rank != len(dims):
        raise Unsupported("another gradient")
    low.memory(grad)
    out = low.slot(grad, None)
    with low.w.block(f"if (b{grad.n})"):
        low.assign(out, grad)
        for own, other in zip(grad.dims, dims):
            if own != other:
                low.w.bail(f"{own} != {other}")
    with low.w.block("else"):
        low.allocate(made)
        low.w.line(f"d2s_zero(p{made.n}, ({low.w.product(dims)}) * sizeof({made.ctype}));")
        low.assign(out, made)
        low.release(made)
    sure = _sure(grad)
    sure.dims = dims
    settled = low.settle(out, [sure, made])
    low.give(op.outputs[0], settled)


def _again(low: Lowering, t: Tensor) -> Tensor:
    return low.same(low.memory(t))


def _take(low: Lowering, op: Operator) -> None:
    items = low.items(op.args[0])
    n = low.w.fresh()
    low.w.declare("lst *", f"l{n}")
    low.w.line(f"l{n} = l{items.n}; l_ref(l{n});")
    low.give(op.outputs[0], Items(n, items.item))


def _contiguous(low: Lowering, op: Operator) -> None:
    grad = _optional(low, op.args[0])
    if isinstance(grad, Tensor):
        low.memory(grad)
        if grad.strides is not None or not grad.straight:
            if grad.null:
                raise Unsupported("a layout")
            made = low.fresh(grad.dtype, grad.dims)
            low.copy(made, grad)
            low.give(op.outputs[0], made)
            return
    low.give(op.outputs[0], _passed(low, grad))


def _required(low: Lowering, op: Operator) -> None:
    low.give(op.outputs[0], low.same(low.tensor(op.args[0])))


def _list_get(low: Lowering, op: Operator) -> None:
    value = low.value(op.args[0])
    index = low.integer(op.args[1])
    if isinstance(value, Nothing):
        low.give(op.outputs[0], value)
        return
    if not isinstance(value, (Tensor, Items)):
        raise Unsupported("no gradients")
    if not value.null:
        found = select(low, value, 0, index) if isinstance(value, Tensor) else item(low, value, index)
        low.give(op.outputs[0], found)
        return
    low.flush()
    name = f"b{value.n}" if isinstance(value, Tensor) else f"l{value.n}"
    if isinstance(value, Tensor):
        low.memory(value)
        sure: Value = _sure(value)
    else:
        sure = Items(value.n, value.item)
    with low.w.block(f"if ({name})"):
        assert isinstance(sure, (Tensor, Items))
        found = select(low, sure, 0, index) if isinstance(sure, Tensor) else item(low, sure, index)
        out = low.slot(found, None)
        low.assign(out, found)
        low.release(found)
    with low.w.block("else"):
        low.assign(out, Nothing())
    low.give(op.outputs[0], low.settle(out, [found, Nothing()]))


def _leaf(low: Lowering, op: Operator) -> None:
    t = low.tensor(op.args[0])
    low.memory(t)
    low.give(op.outputs[0], low.view(t, t.dims, t.strides, 0, t.order, detached=True))


def _list_pop(low: Lowering, op: Operator) -> None:
    value = low.value(op.args[0])
    if isinstance(value, Items) and not value.null:
        array.emit_pop(low, op)
        return
    raise Unsupported("gradients that may be None")


_RULES = {
    "sum": _sum, "accumulate": _accumulate, "accumulate_product": _accumulate_product, "take": _take,
    "zeros_if_none": _zeros_if_none, "contiguous": _contiguous, "required": _required, "list_get": _list_get,
    "leaf": _leaf, "list_pop": _list_pop,
}  # fmt: skip
