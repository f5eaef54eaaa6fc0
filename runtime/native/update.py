"""``update``: writes, in the base's own memory where nothing else refers to it and it dies here, else in a copy.

    %y = update(%x) { ^(%b): aten.add_.Tensor(%b, %g); yield %b }      ->      if (b3->rc == 1) { p3[i] += ... }
"""

from __future__ import annotations

import torch

from runtime.ir import Operator, Variable
from runtime.native import noise, pointwise
from runtime.native.lowering import Lowering
from runtime.native.nest import Nest
from runtime.native.pointwise import convert, element
from runtime.native.values import Number, Tensor, Unsupported
from runtime.ops import aten
from runtime.ops.update import is_unnoticed


def emit(low: Lowering, op: Operator) -> None:
    """The bases, then the Block's writes."""
    (block,) = op.blocks
    p = None if low.alone else noise.drawn(op)
    if p is not None:
        noise.emit_draw(low, op, p)
        return
    if is_unnoticed(op) or any(inner.blocks for inner in block.ops):
        raise Unsupported("a write that nobody notices")
    low.flush()
    live, w = low.live, low.w
    captured = set(live.captured(block))
    dying = {var for var in live.dying[id(op)] if var not in captured and var not in live.pinned}
    for base, arg, out in zip(op.args, block.args, op.outputs):
        assert isinstance(base, Variable)
        t = low.tensor(base)
        low.memory(t)
        if not t.straight:
            raise Unsupported("a layout")
        made = low.blank(t.dtype, t.dims)
        if base in dying and t.mine and t.strides is None:
            with w.block(f"if (b{t.n}->rc == 1 && b{t.n}->src < 0)"):
                w.line(f"b{made.n} = b{t.n}; b{t.n}->rc++; p{made.n} = p{t.n}; o{made.n} = ++objects;")
            with w.block("else"):
                low.allocate(made)
                low.copy(made, t)
        else:
            low.allocate(made)
            low.copy(made, t)
        low.give(arg, made)
        low.give(out, made)
    low.drop(dying)
    low.enter(block)
    for inner in block.ops:
        if _writes(inner):
            low.rules["write"](low, inner)
            low.in_c[id(inner)] = inner.name
            low.drop([*live.dying[id(inner)], *live.unread[id(inner)]])
        else:
            low.operator(inner)
        low.flush()
    count = len(block.args)
    unread = set(live.unread[id(op)])
    for value, out in zip(block.yields[count:], op.outputs[count:]):
        if out not in unread:
            found = low.value(value)
            low.give(out, low.same(found) if isinstance(found, Tensor) else found)
    bases = {id(low.values[arg]) for arg in block.args}
    low.drop(var for var in live.at_exit[id(block)] if id(low.values.get(var)) not in bases)
    low.drop(out for out in op.outputs[:count] if out in unread)


def _writes(op: Operator) -> bool:
    return op.name.startswith("aten.") and bool(aten.writes(aten.resolve(op.name), op.args, op.kwargs))


def write(low: Lowering, op: Operator) -> None:
    """``add_`` and its like: elements of the first operand get new values."""
    target = low.tensor(op.args[0])
    short = op.name.split(".")[1]
    low.memory(target)
    low.flush()
    if not short.endswith("_") or short.endswith("__") or (target.rank and not target.order):
        raise Unsupported(short)
    if short in ("copy_", "fill_", "zero_"):
        value = 0 if short == "zero_" else op.args[1]
        source = pointwise.operand(low, value)
        operands: list[Tensor | Number] = [source]
        if isinstance(source, Number) and source.kind == "float" and target.dtype not in pointwise.FLOATS:
            raise Unsupported("a float in whole numbers")
        if isinstance(source, Tensor):
            if source.dtype in pointwise.FLOATS and target.dtype not in (*pointwise.FLOATS, torch.bool):
                raise Unsupported("floats in whole numbers")
        nest = Nest(target.dims, target.order)
        if isinstance(source, Tensor):
            _ready(low, target, [source])
            text = convert(nest.load(low, source), source.dtype, target.dtype)
        else:
            text = element(low, nest, source, target.dtype)
    else:
        operands, dtype, make = pointwise.plan(low, op)
        if dtype != target.dtype or operands[0] is not target:
            raise Unsupported("another dtype")
        nest = Nest(target.dims, target.order)
        _ready(low, target, [one for one in operands if isinstance(one, Tensor)])
        text = make(nest)
    dims = pointwise.broadcast(low, [target.dims, *(one.dims for one in operands if isinstance(one, Tensor))])
    if dims != target.dims:
        raise Unsupported("sizes")
    nest.store(low, target, text)
    nest.write(low)
    for out in op.outputs:
        if out not in set(low.live.unread[id(op)]):
            low.give(out, low.same(target))


def _ready(low: Lowering, target: Tensor, operands: list[Tensor]) -> None:
    """Operands in memory; one that shares the target's memory without being the target ends the attempt."""
    for one in operands:
        if one.pending:
            low.flush()
        if one is target or one.reg:
            continue
        equal = f"(p{one.n} == p{target.n}"
        if one.dims == target.dims:
            for a, b in zip(low.strides(one), low.strides(target)):
                if a != b:
                    equal += f" && {a} == {b}"
            equal += ")"
        else:
            equal = "0"
        low.w.bail(f"b{one.n} == b{target.n} && !{equal}")
