"""Where a channel is zero if the weights are that make it: a sum, norm or largest magnitude may then go without it.

    %h = linear(%x, %w, %b); %y = relu(%h); %s = sum(%y)        rows of %w and %b are zero: so is %y, and no part of %s
    %y = sigmoid(%h); %s = sum(%y)                              a half is left: the channels that %s sums are fixed

The largest set of axes for which all of that holds at once (a greatest fixed point): a value that goes round a loop is
zero if what it begins with is, and if the body makes zero of zero.
"""

from __future__ import annotations

from runtime.compress.axes import Axis
from runtime.compress.coupler import Coupler
from runtime.compress.weights import names_of, rank
from runtime.ir import UNDEF, Operand, Operator, Variable

_EVERY = frozenset(
    "relu relu_ relu6 tanh tanh_ abs neg sin asin sinh atan erf sqrt square sign floor ceil round trunc silu gelu mish "
    "elu celu selu leaky_relu hardtanh hardswish softsign dropout dropout_ feature_dropout clone contiguous detach "
    "alias to _to_copy add sub rsub add_ sub_ maximum minimum positive expm1 log1p fake_quantize_per_tensor_affine "
    "fake_quantize_per_channel_affine".split()
)
"""Elementwise operators that give zero where all operands are zero."""
_NUMBERS_MATTER = frozenset("add sub rsub add_ sub_ maximum minimum".split())
"""Of these, those with which a number that is no zero gives no zero."""
_ANY = frozenset("mul mul_".split())
"""Elementwise operators that give zero where one operand is zero."""
_FIRST = frozenset("div div_ true_divide".split())
"""Elementwise operators that give zero where the first operand is zero."""


def settle(c: Coupler) -> None:
    """Fix the channels over which something is reduced to which they may add something."""
    groups = {id(group): group for op, x, axis in c.reductions for group in [c.group_of(x, axis)] if group is not None}
    axes = [one for group in groups.values() for one in dict.fromkeys(group.members) if isinstance(one.owner, Variable)]
    zero = set(axes)
    changed = True
    while changed:
        gone = [one for one in axes if one in zero and not _vanishes(c, one, zero)]
        zero.difference_update(gone)
        changed = bool(gone)
    for op, x, axis in c.reductions:
        if Axis(x, axis) not in zero:
            c.op = op
            c.fix(x, axis, f"{op.name}, to which a channel may add something though its weights are zero")


def _vanishes(c: Coupler, axis: Axis, zero: set[Axis]) -> bool:
    """Whether a slice along an axis is zero, those of ``zero`` taken for zero."""
    var, dim = axis
    assert isinstance(var, Variable)
    sources = c.sources.get(var)
    if sources is not None:
        return all(one is UNDEF or _is_zero(one, dim, zero) for one in sources)
    op = c.makers.get(var)
    if op is None:
        return var in c.trained and rank(var) == 1  # a bias: it is one of the weights that are zero
    if axis in c.maps:
        return c.maps[axis] in zero
    if not op.name.startswith("aten.") or len(op.outputs) != 1:
        return op.name in ("grad.named", "grad.leaf") and _is_zero(op.args[0], dim, zero)
    packet = op.name.split(".")[1]
    if names_of(op) is not None:
        return _made(c, op, axis, zero)
    if packet == "batch_norm":
        return dim == 1 and all(one is None or one in c.trained for one in op.args[1:3])
    return _pointwise(c, op, packet, axis, zero)


def _is_zero(operand: Operand, dim: int, zero: set[Axis]) -> bool:
    return isinstance(operand, Variable) and Axis(operand, dim) in zero


def _made(c: Coupler, op: Operator, axis: Axis, zero: set[Axis]) -> bool:
    """A product is zero in the channels that it makes from rows of a parameter, a bias of the same weights included."""
    var, dim = axis
    made = c.made.get(op)
    if made is None or made[1] != axis:
        return False
    bound = c.bound(op)
    bias = bound["self"] if "mat1" in bound else bound.get("bias")
    return made[0] and (bias is None or (bias in c.trained and rank(bias) == 1))


def _pointwise(c: Coupler, op: Operator, packet: str, axis: Axis, zero: set[Axis]) -> bool:
    var, dim = axis
    operands = [one for one in op.args if isinstance(one, Variable) and rank(one) is not None]
    found = [_is_zero(one, dim - (rank(var) or 0) + (rank(one) or 0), zero) for one in operands]
    if not found:
        return False
    if packet in _ANY:
        return any(found)
    if packet in _FIRST:
        return operands[0] is op.args[0] and found[0]
    if packet == "pow" or packet == "pow_":
        return found[0] and isinstance(op.args[1], (int, float)) and op.args[1] > 0
    if packet == "fake_quantize_per_channel_affine":
        return found[0]
    if packet not in _EVERY:
        return False
    others = [one for one in op.args[:2] if not (isinstance(one, Variable) and rank(one) is not None)]
    numbers = packet in _NUMBERS_MATTER and any(isinstance(one, Variable) or one != 0 for one in others)
    return all(found) and not numbers


__all__ = ["settle"]
