"""Scalar Operators: known numbers stay Python's, whole numbers of sizes stay expressions, all others are tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime.export.shared import no_digits, text_of
from runtime.export.torch_export import arithmetic as calc
from runtime.export.torch_export.translator import Translator, aten
from runtime.export.torch_export.values import NUMBERS, Refused, is_constant, number
from runtime.ir import Operator, ScalarType, TensorType, Variable
from runtime.ops.scalar import FUNCTIONS


def _short(op: Operator) -> str:
    return op.name.removeprefix("scalar.")


def _result(op: Operator) -> str:
    type_ = op.outputs[0].type
    assert isinstance(type_, ScalarType)
    return type_.kind


def _common(t: Translator, op: Operator) -> tuple[list[torch.Tensor], str]:
    """The operands as one kind of number: bools are ints."""
    kinds = {t.kind(arg) for arg in op.args}
    kind = "float" if "float" in kinds else "int"
    if "float" in kinds and "int" in kinds:
        return [_exactly(t, arg) for arg in op.args], kind
    return [t.late(arg, kind) for arg in op.args], kind


def _exactly(t: Translator, operand: Any) -> torch.Tensor:
    """A number as a float: an int beyond 2**53 ends the run. Sizes are none."""
    found = t.value(operand)
    if isinstance(found, torch.SymInt) or (type(found) is int and abs(found) <= 2**53):
        return number(found, "float")
    return calc.exactly(t, t.late(operand, t.kind(operand)))


def _is_safe(op: Operator) -> bool:
    """Whether a divisor is known not to be zero."""
    return is_constant(op.args[1]) and op.args[1] != 0


def _arithmetic(t: Translator, op: Operator) -> Any:
    return getattr(calc, _short(op))(t, *_common(t, op)[0])


def _truediv(t: Translator, op: Operator) -> Any:
    a, b = (_exactly(t, arg) for arg in op.args)
    return calc.truediv(t, a, b, _is_safe(op))


def _floordiv(t: Translator, op: Operator) -> Any:
    a, b = _common(t, op)[0]
    return calc.divmod_(t, a, b, _is_safe(op))[0]


def _mod(t: Translator, op: Operator) -> Any:
    a, b = _common(t, op)[0]
    return calc.divmod_(t, a, b, _is_safe(op))[1]


def _pos(t: Translator, op: Operator) -> Any:
    return _common(t, op)[0][0]


def _abs(t: Translator, op: Operator) -> Any:
    (value,), kind = _common(t, op)
    if kind == "int":
        t.fail_if(aten.eq.Scalar(value, calc.LEAST), calc.OVERFLOW)
    return aten.abs.default(value)


def _invert(t: Translator, op: Operator) -> Any:
    return aten.bitwise_not.default(t.late(op.args[0], "int"))


def _pow(t: Translator, op: Operator) -> Any:
    values, kind = _common(t, op)
    exponent = op.args[1]
    if _result(op) == "int":
        if type(exponent) is not int or not 0 <= exponent <= 64:
            raise Refused("a power of ints whose exponent is no constant from 0 to 64")
        made, square = number(1, "int"), values[0]
        while exponent:  # the square of what is left is only needed where something is
            made = calc.mul(t, made, square) if exponent & 1 else made
            exponent >>= 1
            square = calc.mul(t, square, square) if exponent else square
        return made
    base, power = (calc.exactly(t, one) for one in values)
    return calc.require_result(t, aten.pow.Tensor_Tensor(base, power), base, power)


def _shift(t: Translator, op: Operator) -> Any:
    value, by = (t.late(arg, "int") for arg in op.args)
    t.fail_if(aten.lt.Scalar(by, 0), "ValueError: negative shift count")
    near = aten.clamp.default(by, 0, 62)
    far = aten.gt.Scalar(by, 62)
    if _short(op) == "lshift":
        two = aten.bitwise_left_shift.Tensor(number(1, "int"), near)
        t.fail_if(aten.logical_and.default(far, aten.ne.Scalar(value, 0)), calc.OVERFLOW)
        return calc.mul(t, value, two)
    ends = calc.either(aten.lt.Scalar(value, 0), number(-1, "int"), number(0, "int"))
    return calc.either(far, ends, aten.bitwise_right_shift.Tensor(value, near))


_BITS: dict[str, tuple[Any, Any]] = {
    "and_": (aten.logical_and.default, aten.bitwise_and.Tensor),
    "or_": (aten.logical_or.default, aten.bitwise_or.Tensor),
    "xor": (aten.logical_xor.default, aten.bitwise_xor.Tensor),
}


def _bits(t: Translator, op: Operator) -> Any:
    of_bools, of_ints = _BITS[_short(op)]
    if all(t.kind(arg) == "bool" for arg in op.args):
        return of_bools(*(t.late(arg, "bool") for arg in op.args))
    return of_ints(*(t.late(arg, "int") for arg in op.args))


_TESTS: dict[str, Any] = {name: getattr(aten, name).Tensor for name in ("lt", "le", "gt", "ge", "eq", "ne")}


def _compare(t: Translator, op: Operator) -> Any:
    return _TESTS[_short(op)](*_common(t, op)[0])


def _not(t: Translator, op: Operator) -> Any:
    found = t.flag(op.args[0])
    return not found if isinstance(found, bool) else aten.logical_not.default(found)


def _bool(t: Translator, op: Operator) -> Any:
    if not isinstance(op.args[0], Variable) or not isinstance(op.args[0].type, TensorType):
        t.kind(op.args[0])
    return t.flag(op.args[0])


def _int(t: Translator, op: Operator) -> Any:
    if len(op.args) > 1:
        raise Refused("int() of text")
    if t.kind(op.args[0]) != "float":
        return t.late(op.args[0], "int")
    return calc.whole(t, aten.trunc.default(t.late(op.args[0], "float")))


def _float(t: Translator, op: Operator) -> Any:
    t.kind(op.args[0])
    return _exactly(t, op.args[0])


def _round(t: Translator, op: Operator) -> Any:
    digits = op.args[1] if len(op.args) > 1 else None
    kind = t.kind(op.args[0])
    reason = no_digits(digits, kind)
    if reason:
        raise Refused(reason)
    if kind != "float":
        return t.late(op.args[0], "int")
    if isinstance(digits, int):
        return calc.rounded(t.late(op.args[0], "float"), digits)
    return calc.whole(t, aten.round.default(t.late(op.args[0], "float")))


def _extreme(t: Translator, op: Operator) -> Any:
    kinds = {t.kind(arg) for arg in op.args}
    if len(kinds) != 1:
        raise Refused("min or max of different kinds of numbers")
    (kind,) = kinds
    better = aten.lt.Tensor if _short(op) == "min" else aten.gt.Tensor
    found, *rest = (t.late(arg, kind) for arg in op.args)
    for one in rest:
        found = calc.either(better(one, found), one, found)
    return found


def _select(t: Translator, op: Operator) -> Any:
    flag, kind = t.flag(op.args[0]), _result(op)
    if isinstance(flag, bool):
        return t.value(op.args[1 if flag else 2])
    return calc.either(flag, t.late(op.args[1], kind), t.late(op.args[2], kind))


def _expect(t: Translator, op: Operator) -> Any:
    if t.kind(op.args[0]) != op.args[1]:
        raise Refused("a number whose kind only the run knows")
    return t.value(op.args[0])


def _is_none(t: Translator, op: Operator) -> Any:
    if op.args[0] is None:
        return True
    missing = t.nothing(op.args[0])
    if missing is None:
        return False
    if missing.constant is None and not missing.reason.startswith("None"):
        raise Refused("a question whether a value of the run is None")
    return missing.constant is None


def _is_integer(t: Translator, op: Operator) -> Any:
    value = t.late(op.args[0], "float")
    return aten.logical_and.default(calc.is_finite(value), aten.eq.Tensor(value, aten.floor.default(value)))


def _item(t: Translator, op: Operator) -> Any:
    found = t.tensor(op.args[0])
    found = found if found.dim() == 0 else aten.reshape.default(found, [])
    return number(found, _result(op))


def _size(t: Translator, op: Operator) -> Any:
    dim = t.value(op.args[1])
    if not isinstance(dim, int):
        raise Refused("the size of a dimension that only the run knows")
    return t.tensor(op.args[0]).size(dim)


def _numel(t: Translator, op: Operator) -> Any:
    return t.tensor(op.args[0]).numel()


def _dim(t: Translator, op: Operator) -> Any:
    return t.tensor(op.args[0]).dim()


_MATH: dict[str, Any] = {
    **{name: getattr(aten, name).default for name in (
        "sqrt", "exp", "log", "log1p", "log2", "log10", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin",
        "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc")},
    "fabs": aten.abs.default, "pow": aten.pow.Tensor_Tensor, "atan2": aten.atan2.default,
    "copysign": aten.copysign.Tensor, "hypot": aten.hypot.default, "fmod": aten.fmod.Tensor,
}  # fmt: skip
_NUMBERS_OF = {"pow": 2, "atan2": 2, "copysign": 2, "hypot": 2, "fmod": 2}
_ROUNDED: dict[str, Any] = {"floor": aten.floor.default, "ceil": aten.ceil.default, "trunc": aten.trunc.default}
_UNCHECKED: dict[str, Any] = {
    "isnan": aten.isnan.default, "isinf": aten.isinf.default, "isfinite": aten.isfinite.default,
    "degrees": aten.rad2deg.default, "radians": aten.deg2rad.default,
}  # fmt: skip
"""Those that never raise."""


def _math(t: Translator, op: Operator) -> Any:
    short = _short(op).removeprefix("math.")
    kinds = [t.kind(arg) for arg in op.args]
    if len(kinds) != _NUMBERS_OF.get(short, 1):
        raise Refused(f"math.{short} of {len(kinds)} numbers")
    if short in _ROUNDED and kinds[0] != "float":
        return t.late(op.args[0], "int")
    values = [_exactly(t, arg) for arg in op.args]
    if short in _MATH:
        return calc.require_result(t, _MATH[short](*values), *values)
    if short in _ROUNDED:
        return calc.whole(t, _ROUNDED[short](*values))
    return _UNCHECKED[short](*values)


_RULES: dict[str, Callable[[Translator, Operator], Any]] = {
    **dict.fromkeys(("add", "sub", "mul", "neg"), _arithmetic), "truediv": _truediv, "floordiv": _floordiv,
    "mod": _mod, "pow": _pow, "pos": _pos, "abs": _abs, "invert": _invert, "lshift": _shift, "rshift": _shift,
    **dict.fromkeys(_BITS, _bits), **dict.fromkeys(_TESTS, _compare), "not_": _not, "bool": _bool, "truth": _bool,
    "int": _int, "float": _float, "round": _round, "min": _extreme, "max": _extreme, "select": _select,
    "expect": _expect, "is_none": _is_none, "is_integer": _is_integer, "item": _item, "number": _item, "index": _item,
    "size": _size, "numel": _numel, "dim": _dim,
    **{f"math.{name}": _math for name in (*_MATH, *_ROUNDED, *_UNCHECKED)},
}  # fmt: skip
_MOST = {"min": 2**31, "max": 2**31, "select": 3}
"""How many arguments a rule takes, where it may be more than two."""

_OF_SIZES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
    "pos": lambda a: a, "int": lambda a: a, "index": lambda a: a, "min": torch.sym_min, "max": torch.sym_max,
}  # fmt: skip


def _of_sizes(op: Operator, given: list[Any]) -> Any:
    """A whole number of sizes, as an expression; None if that has no exact form."""
    short = _short(op)
    if not all(type(one) is int or isinstance(one, torch.SymInt) for one in given):
        return None
    if short in ("floordiv", "mod") and type(given[1]) is int and given[1] > 0:
        return given[0] // given[1] if short == "floordiv" else given[0] % given[1]
    if short not in _OF_SIZES or (short in ("min", "max") and len(given) != 2):
        return None
    return _OF_SIZES[short](*given)


def emit(t: Translator, op: Operator) -> None:
    """Any scalar Operator."""
    out, short = op.outputs[0], _short(op)
    if isinstance(out.type, ScalarType) and out.type.kind == "str":
        t.give(out, text_of(t, op))
        return
    rule = _RULES.get(short)
    if rule is None:
        raise Refused("there is no rule for it")
    if op.kwargs or len(op.args) > _MOST.get(short, 2):
        raise Refused("this many arguments")
    if short not in ("is_none", "expect", "select"):
        given = [t.values.get(arg) if isinstance(arg, Variable) else arg for arg in op.args]
        if all(map(is_constant, given)):
            t.give(out, _known(op, given))
            return
        found = _of_sizes(op, given)
        if found is not None:
            t.give(out, found)
            return
    t.give(out, rule(t, op))


def _known(op: Operator, given: list[Any]) -> Any:
    try:
        found = FUNCTIONS[op.name](*given)
    except (ArithmeticError, ValueError) as error:
        raise Refused(f"it always raises {type(error).__name__}: {error}") from None
    if type(found).__name__ not in NUMBERS or (isinstance(found, int) and abs(found) >= 2**63):
        raise Refused("a number that PyTorch's tensors do not hold")
    return found


def operators() -> list[str]:
    """The scalar operators that have a rule."""
    return sorted(_RULES)


__all__ = ["emit", "operators"]
