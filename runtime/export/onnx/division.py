"""``//`` and ``%`` of tensors, as PyTorch's kernels compute them: from the remainder, not from the quotient.

    1.5 // 0.3 is 4 in float32, although floor(1.5 / 0.3) is 5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from runtime.export.onnx.translator import Translator, shape_of
from runtime.export.onnx.writer import Refused, Value, Writer, torch_dtype
from runtime.ir import Operator

_DIVIDE_BY_ZERO = "RuntimeError: ZeroDivisionError"


def _node(w: Writer, operator: str, *values: Value, **attributes: Any) -> Value:
    return w.node(operator, *values, dtype=torch_dtype(values[-1]), **attributes)


def _flag(w: Writer, operator: str, *values: Value) -> Value:
    return w.node(operator, *values, dtype=torch.bool)


def _operands(t: Translator, op: Operator, bound: Mapping[str, Any]) -> tuple[Value, Value]:
    """Both operands in the dtype of the result; of ints the divisor is never zero, as that ends the process."""
    w, dtype = t.w, t.dtype(op.outputs[0].type)
    a, b = t.value(bound["self"], dtype), t.value(bound["other"], dtype)
    if dtype is torch.bool:
        raise Refused("a division of bools")
    if not dtype.is_floating_point:
        none = _flag(w, "Equal", b, w.constant(0, dtype))
        count = w.node("ReduceSum", w.cast(none, torch.int64), dtype=torch.int64, shape=[], keepdims=0)
        w.fail_if(w.test("Greater", count, w.constant(0, torch.int64)), _DIVIDE_BY_ZERO)
        b = _node(w, "Where", none, w.constant(1, dtype), b)
    return a, b


def _rest(w: Writer, a: Value, b: Value) -> tuple[Value, Value]:
    """What ``fmod`` gives, and where its sign is not the divisor's."""
    zero = w.constant(0, torch_dtype(b))
    rest = _node(w, "Mod", a, b, fmod=1)
    signs = _flag(w, "Xor", _flag(w, "Less", rest, zero), _flag(w, "Less", b, zero))
    return rest, _flag(w, "And", _flag(w, "Not", _flag(w, "Equal", rest, zero)), signs)


def _floored(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    w = t.w
    a, b = _operands(t, op, bound)
    dtype = torch_dtype(b)
    if not dtype.is_floating_point:
        return _node(w, "Div", _node(w, "Sub", a, _node(w, "Mod", a, b)), b)
    zero, one, half = (w.constant(number, dtype) for number in (0.0, 1.0, 0.5))
    rest, other = _rest(w, a, b)
    quotient = _node(w, "Div", _node(w, "Sub", a, rest), b)
    quotient = _node(w, "Where", other, _node(w, "Sub", quotient, one), quotient)
    floor = _node(w, "Floor", quotient)
    above = _flag(w, "Greater", _node(w, "Sub", quotient, floor), half)
    floor = _node(w, "Where", above, _node(w, "Add", floor, one), floor)
    plain = _node(w, "Div", a, b)
    floor = _node(w, "Where", _flag(w, "Equal", quotient, zero), _node(w, "Mul", plain, zero), floor)
    return _node(w, "Where", _flag(w, "Equal", b, zero), plain, floor)


def _truncated(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    w = t.w
    a, b = _operands(t, op, bound)
    made = _node(w, "Div", a, b)
    if not torch_dtype(b).is_floating_point:
        return made
    zero = w.constant(0, torch_dtype(b))
    return _node(w, "Where", _flag(w, "Less", made, zero), _node(w, "Ceil", made), _node(w, "Floor", made))


def _remainder(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    w = t.w
    a, b = _operands(t, op, bound)
    if not torch_dtype(b).is_floating_point:
        return _node(w, "Mod", a, b)
    rest, other = _rest(w, a, b)
    return _node(w, "Where", other, _node(w, "Add", rest, b), rest)


def _fmod(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    return _node(t.w, "Mod", *_operands(t, op, bound), fmod=1)


def _divided(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
    mode = bound.get("rounding_mode")
    if mode is not None:
        return (_floored if mode == "floor" else _truncated)(t, op, bound)
    return _node(t.w, "Div", *_operands(t, op, bound))


def _shaped(rule: Callable[[Translator, Operator, Mapping[str, Any]], Value],
            ) -> Callable[[Translator, Operator, Mapping[str, Any]], Value]:  # fmt: skip
    """The same, with the sizes of the result."""

    def shaped(t: Translator, op: Operator, bound: Mapping[str, Any]) -> Value:
        made = rule(t, op, bound)
        like = t.w.value(torch_dtype(made), shape_of(op.outputs[0].type))
        made.shape = like.shape
        return made

    return shaped


RULES: dict[str, Callable[[Translator, Operator, Mapping[str, Any]], Value]] = {
    "aten.div": _shaped(_divided), "aten.floor_divide": _shaped(_floored), "aten.remainder": _shaped(_remainder),
    "aten.fmod": _shaped(_fmod),
}  # fmt: skip
"""By the operator's name."""

__all__ = ["RULES"]
