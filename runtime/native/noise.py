"""Random numbers inside C: PyTorch draws them, so that the stream is eager's.

    update(%n) { aten.bernoulli_.float(%n, 0.9) }      ->      c->call(token, 3, words): a new tensor comes back
    aten.dropout.default(%x, 0.1, True)                ->      the same, and x * (noise / 0.9) in the nest around
"""

from __future__ import annotations

from runtime.ir import Operand, Operator, Variable
from runtime.native import calls
from runtime.native.lowering import Lowering
from runtime.native.pointwise import FLOATS, compute
from runtime.native.values import Tensor, Unsupported
from runtime.ops import aten


def _draw(low: Lowering, like: Operand, p: Operand) -> Tensor:
    """Ones with probability ``p``, else zeros, of the sizes and dtype of another tensor."""
    if not isinstance(like, Variable) or low.alone:
        raise Unsupported("nobody draws")
    out = Variable("noise", like.type)
    op = Operator("aten.bernoulli.p", (like, p), outputs=(out,))
    calls.emit(low, op)
    low.called.pop(id(op))  # it is a part of another one, which C runs
    found = low.values.pop(out)
    assert isinstance(found, Tensor)
    return found


def emit_dropout(low: Lowering, op: Operator) -> None:
    """``dropout``: the very same object where it drops nothing, else what PyTorch multiplies with."""
    call = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    x, p = low.tensor(op.args[0]), call["p"]
    if call["train"] is False or (call["train"] is True and type(p) is float and p == 0):
        low.give(op.outputs[0], low.same(x))
        return
    if call["train"] is not True or type(p) is not float or not 0 < p < 1 or x.dtype not in FLOATS:
        raise Unsupported("this dropout")
    count = low.w.product(x.dims)  # PyTorch gives back what is empty
    if count == 0:
        raise Unsupported("nothing")
    if not isinstance(count, int):
        low.w.bail(f"!({count})")
    noise, kept = _draw(low, op.args[0], 1 - p), low.number(1 - p)
    ctype = x.ctype
    low.give(op.outputs[0], compute(
        low, op.outputs[0], [x, noise], x.dtype,
        lambda nest: f"{nest.load(low, x)} * ({nest.load(low, noise)} / ({ctype}){kept.text})"))  # fmt: skip
    low.release(noise)


def drawn(op: Operator) -> Operand:
    """The probability of ones, where an ``update`` does nothing but fill one tensor with random zeros and ones; else
    None."""
    (block,) = op.blocks
    if len(block.ops) != 1 or block.ops[0].name != "aten.bernoulli_.float" or len(op.args) != 1:
        return None
    inner = block.ops[0]
    call = aten.arguments(aten.resolve(inner.name), inner.args, inner.kwargs)
    known = {*block.args, *inner.outputs}
    plain = call["self"] is block.args[0] and call["generator"] is None and all(one in known for one in block.yields)
    return call["p"] if plain and type(call["p"]) is float else None


def emit_draw(low: Lowering, op: Operator, p: Operand) -> None:
    """Such an ``update``: what was there is not looked at."""
    (block,) = op.blocks
    base = op.args[0]
    if low.tensor(base).dtype not in FLOATS:
        raise Unsupported("this dtype")
    made = _draw(low, base, p)
    low.in_c[id(block.ops[0])] = block.ops[0].name
    unread = set(low.live.unread[id(op)])
    read = [out for out in op.outputs if out not in unread]
    low.drop(low.live.dying[id(op)])
    low.enter(block)
    for place, out in enumerate(read):
        low.give(out, low.same(made) if place else made)
    if not read:
        low.release(made)


__all__ = ["drawn", "emit_draw", "emit_dropout"]
