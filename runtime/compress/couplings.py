"""Which axes an ATen operator keeps, contracts, makes or fixes: a rule for each operator that is known.

    linear(x, w, b)        last axis of x is axis 1 of w; axis 0 of w is b's and the last of the result
    add(x, y)              the axes of x, y and the result are the same
    softmax(x, -1)         the last axis may not change; the others stay what they are

An operator without a rule fixes all of its axes. A reduction over an axis (a sum, a norm, the largest magnitude) leaves
it open if a channel of zeros adds nothing to it; ``vanishing`` then says whether the channel is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.compress.coupler import Coupler, tensors
from runtime.compress.weights import rank
from runtime.ir import Operator, Variable
from runtime.ops import aten

Rule = Callable[[Coupler, Operator, dict[str, Any]], bool]
"""(coupler, Operator, its arguments by name) -> whether the rule takes such arguments."""

_HARMLESS = frozenset({"settings", "caught", "checkpoint", "subscript"})
"""Attributes of an ATen Operator that say nothing of sizes; ``checked`` does."""


def couple(c: Coupler, op: Operator) -> None:
    """Say of an ATen Operator's axes what is known."""
    overload = aten.resolve(op.name)
    bound = c.bound(op)
    packet = op.name.split(".")[1]
    if set(op.attrs) - _HARMLESS or not op.name.startswith("aten.") or any(one.is_out for one in
                                                                          overload._schema.arguments):
        c.fix_operator(op)
    elif packet in _RULES:
        if not _RULES[packet](c, op, bound):
            c.fix_operator(op)
    elif torch.Tag.pointwise in overload.tags or packet in _SAME:
        c.pointwise(op, op.inputs)
    else:
        c.fix_operator(op)


def _dim(value: Any, var: Any, more: int = 0) -> int | None:
    """A dimension from the front; None for one that is not known."""
    found = rank(var)
    if type(value) is not int or found is None:
        return None
    return value if value >= 0 else value + found + more


def _dims(value: Any, var: Variable) -> list[int] | None:
    """Dimensions from the front; all of them where none is named."""
    if value is None or value == []:
        return list(range(rank(var) or 0))
    found = [_dim(one, var) for one in (value if isinstance(value, (list, tuple)) else [value])]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


# --- products


def _linear(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x, weight, bias = bound["input"], bound["weight"], bound.get("bias")
    (out,) = op.outputs
    if rank(weight) != 2 or not rank(x):
        return False
    last = (rank(x) or 0) - 1
    for axis in range(last):
        c.same(x, axis, out, axis)
    c.same(x, last, weight, 1)
    c.makes(weight, 0, out, last)
    if bias is not None:
        c.same(bias, 0, out, last)
    return True


def _product(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    """``mm``, ``bmm``, and ``matmul`` of a matrix, or of the same batches."""
    a, b = list(bound.values())[:2]
    (out,) = op.outputs
    many, few = rank(a), rank(b)
    if many is None or few is None or many < 2 or few < 2 or (few != 2 and few != many) or rank(out) != many:
        return False
    for axis in range(many - 2):
        c.same(a, axis, out, axis)
        if few > 2:
            c.same(b, axis, out, axis)
    c.same(a, many - 2, out, many - 2)
    c.same(a, many - 1, b, few - 2)
    c.makes(b, few - 1, out, many - 1)
    return True


def _addmm(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    taken = _product(c, op, {"self": bound["mat1"], "mat2": bound["mat2"]})
    if taken:
        c.pointwise(op, [bound["self"]])
    return taken


def _convolution(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x, weight, bias, groups = bound["input"], bound["weight"], bound.get("bias"), bound["groups"]
    transposed = "conv_transpose" in op.name or bound.get("transposed") is True
    (out,) = op.outputs
    shape, full = c.shape(weight), rank(weight)
    if shape is None or full is None or rank(x) not in (full, full - 1) or rank(out) != rank(x):
        return False
    channel = (rank(x) or 0) - full + 1
    if channel:
        c.same(x, 0, out, 0)
    for axis in range(channel + 1, rank(x) or 0):
        c.fix_all_of(axis, x, out, reason=op.name)
    for axis in range(2, full):
        c.fix(weight, axis, f"{op.name}, whose kernel it is")
    depthwise = not transposed and groups == shape[0] == (c.shape(x) or (0, 0))[channel] and shape[1] == 1
    if groups == 1:
        c.same(x, channel, weight, 0 if transposed else 1)
        c.makes(weight, 1 if transposed else 0, out, channel)
    elif depthwise:
        c.same(x, channel, weight, 0)
        c.same(weight, 0, out, channel)
        c.written("groups", None, weight, 0)
    else:
        c.fix_all([weight], f"{op.name} in groups")
        for one in (x, out):
            c.fix(one, channel, f"{op.name} in groups")
    if bias is not None:
        c.same(bias, 0, out, channel)
    return True


def _encoder_layer(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    """A whole layer of a transformer: the hidden channels of its two linear operators are its own."""
    hidden = {"ffn_weight_1": 0, "ffn_bias_1": 0, "ffn_weight_2": 1}
    for name, value in bound.items():
        for axis in range(rank(value) or 0):
            if hidden.get(name) != axis:
                c.fix(value, axis, op.name)
    c.fix_all(op.outputs, op.name)
    group = c.group_of(bound["ffn_weight_1"], 0)
    if group is None:
        return False
    c.same(bound["ffn_bias_1"], 0, bound["ffn_weight_1"], 0)
    c.same(bound["ffn_weight_2"], 1, bound["ffn_weight_1"], 0)
    return True


# --- what is computed for each channel, or along other axes


def _batch_norm(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x = bound["input"]
    out = op.outputs[0]
    if len(op.outputs) != 1 or (rank(x) or 0) < 2:
        return False
    c.all_same(x, out)
    for name in ("weight", "bias", "running_mean", "running_var"):
        if bound[name] is not None:
            c.same(bound[name], 0, x, 1)
    return True


def _layer_norm(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x, (out, *_) = bound["input"], op.outputs
    if len(op.outputs) != 1 or rank(x) is None:
        return False
    c.all_same(x, out)
    own = len(bound["normalized_shape"])
    for axis in range((rank(x) or 0) - own, rank(x) or 0):
        c.fix(x, axis, op.name)
    c.fix_all(tensors([bound.get("weight"), bound.get("bias")]), op.name)
    return True


def _group_norm(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x = bound["input"]
    c.all_same(x, op.outputs[0])
    c.fix_all([x, *tensors([bound.get("weight"), bound.get("bias")])], op.name)
    return len(op.outputs) == 1


def _along(name: str) -> Rule:
    """As it is in all axes but one, or some, along which it may not change."""
    def rule(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
        x = next(iter(bound.values()))
        dims = _dims(bound.get(name), x)
        if not isinstance(x, Variable) or dims is None or any(rank(out) != rank(x) for out in op.outputs):
            return False
        others = [one for one in tensors(bound) if one is not x]
        c.fix_all(others, op.name)
        for axis in range(rank(x) or 0):
            for out in op.outputs:
                if axis in dims:
                    c.fix(out, axis, op.name)
                else:
                    c.same(x, axis, out, axis)
            if axis in dims:
                c.fix(x, axis, op.name)
        return True

    return rule


def _pooled(kept: int) -> Rule:
    """The last axes are places in an image."""
    def rule(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
        x = next(iter(bound.values()))
        if rank(x) is None or any(rank(out) != rank(x) for out in op.outputs):
            return False
        for out in op.outputs:
            for axis in range(rank(x) or 0):
                if axis < (rank(x) or 0) - kept:
                    c.maps_to(x, axis, out, axis)
                else:
                    c.fix_all_of(axis, x, out, reason=op.name)
        return True

    return rule


def _reduction(contracts: Callable[[Coupler, Any], bool], zero: bool = True) -> Rule:
    """Over some axes, or all. Those may change if a channel of zeros adds nothing. ``zero``: it makes zero of zeros."""
    def rule(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
        x = next(iter(bound.values()))
        dims = _dims(bound.get("dim"), x)
        if not isinstance(x, Variable) or dims is None or len(tensors(bound)) != 1:
            return False
        kept = [axis for axis in range(rank(x) or 0) if axis not in dims]
        keepdim = bound.get("keepdim") is True and "dim" in bound
        for out in op.outputs:
            if rank(out) != (rank(x) if keepdim else len(kept)):
                return False
            for place, axis in enumerate(kept):
                (c.maps_to if zero else c.same)(x, axis, out, axis if keepdim else place)
        for axis in dims:
            if contracts(c, bound) and len(op.outputs) == 1:
                c.reductions.append((op, x, axis))
            else:
                c.fix(x, axis, op.name)
        return True

    return rule


def _never(c: Coupler, bound: dict[str, Any]) -> bool:
    return False


def _adds(c: Coupler, bound: dict[str, Any]) -> bool:
    return True


def _of_magnitudes(c: Coupler, bound: dict[str, Any]) -> bool:
    """The largest of numbers that are not negative: zero is no larger than the others."""
    made = c.makers.get(bound["self"])
    if made is None:
        return False
    return made.name in ("aten.abs.default", "aten.relu.default", "aten.square.default") or (
        made.name == "aten.pow.Tensor_Scalar" and made.args[1] == 2)


def _norm(c: Coupler, bound: dict[str, Any]) -> bool:
    order = bound.get("p", bound.get("ord", 2))
    return order is None or (isinstance(order, (int, float)) and order >= 1)


# --- the same elements in other places


def _mapped(c: Coupler, op: Operator, x: Any, sources: Sequence[int | None]) -> bool:
    """Axis after axis of the result is an axis of ``x``, or a new one."""
    (out,) = op.outputs
    if rank(out) != len(sources) or rank(x) is None:
        return False
    for axis, source in enumerate(sources):
        if source is not None:
            c.maps_to(x, source, out, axis)
    return True


def _t(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    return _mapped(c, op, bound["self"], range(rank(bound["self"]) or 0)[::-1])


def _transpose(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x = bound["self"]
    one, other = _dim(bound.get("dim0"), x), _dim(bound.get("dim1"), x)
    if one is None or other is None:
        return False
    order = list(range(rank(x) or 0))
    order[one], order[other] = other, one
    return _mapped(c, op, x, order)


def _permute(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    dims = _dims(bound["dims"], bound["self"])
    return dims is not None and _mapped(c, op, bound["self"], dims)


def _unsqueeze(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x, dim = bound["self"], _dim(bound["dim"], bound["self"], 1)
    if dim is None:
        return False
    order: list[int | None] = list(range(rank(x) or 0))
    order.insert(dim, None)
    return _mapped(c, op, x, order)


def _squeeze(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    """Of named axes; one that is no 1 stays, and may not become one."""
    x, shape = bound["self"], c.shape(bound["self"])
    dims = _dims(bound.get("dim"), x) if bound.get("dim") not in (None, []) else None
    if dims is None or shape is None:
        return False
    for axis in dims:
        c.fix(x, axis, op.name)
    return _mapped(c, op, x, [axis for axis, size in enumerate(shape) if axis not in dims or size != 1])


def _select(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    x, dim = bound["self"], _dim(bound["dim"], bound["self"])
    if dim is None:
        return False
    c.fix(x, dim, op.name)
    return _mapped(c, op, x, [axis for axis in range(rank(x) or 0) if axis != dim])


def _cat(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    given, (out,) = bound["tensors"], op.outputs
    dim = _dim(bound["dim"], out)
    if not isinstance(given, (list, tuple)) or dim is None or any(rank(one) != rank(out) for one in given):
        return False
    for one in given:
        for axis in range(rank(out) or 0):
            if axis == dim:
                c.fix_all_of(axis, one, out, reason=op.name)
            else:
                c.same(one, axis, out, axis)
    return True


def _stack(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    given, (out,) = bound["tensors"], op.outputs
    dim = _dim(bound["dim"], out)
    if not isinstance(given, (list, tuple)) or dim is None or any(rank(one) is None for one in given):
        return False
    order: list[int | None] = list(range((rank(out) or 1) - 1))
    order.insert(dim, None)
    return all(_mapped(c, op, one, order) for one in given)


def _reshape(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    """Where only axes of size 1 come and go; all other reshapes fix what they take apart."""
    x, (out,) = bound["self"], op.outputs
    before, after = c.shape(x), c.shape(out)
    if before is None or after is None:
        return False
    large = [[axis for axis, size in enumerate(shape) if size != 1] for shape in (before, after)]
    if [before[axis] for axis in large[0]] != [after[axis] for axis in large[1]]:
        return False
    if sum(not isinstance(before[axis], int) for axis in large[0]) > 1:
        return False  # which of two open sizes is 1 is not known
    sizes = bound.get("size", bound.get("shape"))
    for axis, other in zip(*large):
        c.maps_to(x, axis, out, other)
        if isinstance(sizes, (list, tuple)) and type(sizes[other]) is int and sizes[other] != -1:
            c.written("size" if "size" in bound else "shape", other, out, other)
    return True


def _ordered(c: Coupler, op: Operator, bound: dict[str, Any]) -> bool:
    """The channels that ``fake_quantize`` has a scale for."""
    x, axis = bound["self"], bound["axis"]
    c.pointwise(op, [x])
    for name in ("scale", "zero_point"):
        c.same(bound[name], 0, x, axis)
    return True


_SAME = frozenset(
    "contiguous clone to detach alias dropout feature_dropout alpha_dropout _to_copy zeros_like ones_like full_like "
    "empty_like masked_fill type_as positive gelu softplus hardtanh relu6 leaky_relu relu relu_ dropout_ silu mish "
    "hardswish hardsigmoid elu selu celu fake_quantize_per_tensor_affine copy_ fill_ zero_ add_ sub_ mul_ div_ "
    "lift_fresh masked_fill_".split()
)
"""Elementwise operators, which are not all tagged so."""
_ALONG = (
    "softmax log_softmax _softmax _log_softmax cumsum cumprod topk sort argsort slice narrow index_select"
).split()
_POOLS = {f"{kind}_pool{n}d{more}": _pooled(n) for n in (1, 2, 3) for kind in ("max", "avg", "adaptive_avg",
          "adaptive_max") for more in ("", "_with_indices")}  # fmt: skip
_RULES: dict[str, Rule] = {
    "linear": _linear, "mm": _product, "bmm": _product, "matmul": _product, "addmm": _addmm,
    **{f"conv{n}d": _convolution for n in (1, 2, 3)}, **{f"conv_transpose{n}d": _convolution for n in (1, 2, 3)},
    "convolution": _convolution, "batch_norm": _batch_norm, "layer_norm": _layer_norm, "rms_norm": _layer_norm,
    "group_norm": _group_norm, **dict.fromkeys(_ALONG, _along("dim")), "flip": _along("dims"), **_POOLS,
    **dict.fromkeys("mean prod std var min amin".split(), _reduction(_never)),
    **dict.fromkeys("argmax argmin logsumexp all any median".split(), _reduction(_never, zero=False)),
    "sum": _reduction(_adds), "max": _reduction(_of_magnitudes), "amax": _reduction(_of_magnitudes),
    "norm": _reduction(_norm), "linalg_vector_norm": _reduction(_norm),
    "t": _t, "transpose": _transpose, "permute": _permute, "unsqueeze": _unsqueeze, "squeeze": _squeeze,
    "select": _select, "cat": _cat, "stack": _stack, "reshape": _reshape, "view": _reshape, "_unsafe_view": _reshape,
    "flatten": _reshape, "_transformer_encoder_layer_fwd": _encoder_layer, "fake_quantize_per_channel_affine": _ordered,
}  # fmt: skip

__all__ = ["couple"]
