"""Python's numbers as tensors without dimensions: int64, float64 and bool, with Python's rules.

Where Python raises, or an int needs more than 64 bits, the run ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime.export.onnx.translator import Translator
from runtime.export.onnx.writer import NUMBERS, Refused, Value, Writer, torch_dtype
from runtime.export.shared import SPLIT, halves, no_digits, text_of
from runtime.ir import Operator, ScalarType, TensorType, Variable

_EXACT = 2**53
"""Up to here every int is a float64."""
_LEAST = -(2**63)
_DOMAIN = "ValueError: math domain error, or a result too large"
OVERFLOW = "OverflowError: an int beyond 64 bits"


class Calculator:
    """Arithmetic of Python's numbers on values."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer

    def int(self, value: int) -> Value:
        """A constant."""
        return self.w.constant(value, torch.int64)

    def float(self, value: float) -> Value:
        """A constant."""
        return self.w.constant(value, torch.float64)

    def op(self, operator: str, a: Value, *others: Value, **attributes: Any) -> Value:
        """A node whose result is like its first argument."""
        return self.w.node(operator, a, *others, like=a, **attributes)

    def add(self, a: Value, b: Value) -> Value:
        """``a + b``."""
        made = self.op("Add", a, b)
        if torch_dtype(a) is torch.int64:
            signs = self.op("BitwiseAnd", self.op("BitwiseXor", a, made), self.op("BitwiseXor", b, made))
            self.w.fail_if(self.w.test("Less", signs, self.int(0)), OVERFLOW)
        return made

    def sub(self, a: Value, b: Value) -> Value:
        """``a - b``."""
        made = self.op("Sub", a, b)
        if torch_dtype(a) is torch.int64:
            signs = self.op("BitwiseAnd", self.op("BitwiseXor", a, b), self.op("BitwiseXor", a, made))
            self.w.fail_if(self.w.test("Less", signs, self.int(0)), OVERFLOW)
        return made

    def mul(self, a: Value, b: Value) -> Value:
        """``a * b``."""
        made = self.op("Mul", a, b)
        if torch_dtype(a) is torch.int64:
            about = self.op("Mul", self.w.cast(a, torch.float64), self.w.cast(b, torch.float64))
            beyond = self.w.test("GreaterOrEqual", self.op("Abs", about), self.float(9.2233720368547e18))
            self.w.fail_if(beyond, OVERFLOW)
        return made

    def neg(self, a: Value) -> Value:
        """``-a``."""
        return self.sub(self.int(0), a) if torch_dtype(a) is torch.int64 else self.op("Neg", a)

    def require_divisor(self, b: Value, said: str) -> Value:
        """A divisor, and the end of the run where it is zero."""
        zero = self.w.constant(0, torch_dtype(b))
        none = self.w.test("Equal", b, zero)
        self.w.fail_if(none, f"ZeroDivisionError: {said}")
        return self.w.either(none, self.w.constant(1, torch_dtype(b)), b)

    def truediv(self, a: Value, b: Value) -> Value:
        """``a / b`` of two floats."""
        return self.op("Div", a, self.require_divisor(b, "division by zero"))

    def divmod(self, a: Value, b: Value) -> tuple[Value, Value]:
        """``a // b`` and ``a % b``: the remainder has the divisor's sign."""
        b = self.require_divisor(b, "integer division or modulo by zero")
        if torch_dtype(a) is torch.int64:
            least = self.w.test("Equal", a, self.int(_LEAST))
            self.w.fail_if(least, OVERFLOW)
            a = self.w.either(least, self.int(0), a)  # divided by -1 it would end the process
            rest = self.op("Mod", a, b)
            return self.op("Div", self.op("Sub", a, rest), b), rest
        w, zero = self.w, self.float(0.0)
        rest = self.op("Mod", a, b, fmod=1)
        quotient = self.op("Div", self.op("Sub", a, rest), b)
        none = w.test("Equal", rest, zero)
        signs = w.flags("Xor", w.test("Less", rest, zero), w.test("Less", b, zero))
        other = w.flags("And", w.flags("Not", none), signs)
        signed = w.either(w.test("Less", b, zero), self.float(-0.0), zero)
        rest = w.either(none, signed, w.either(other, self.op("Add", rest, b), rest))
        quotient = w.either(other, self.op("Sub", quotient, self.float(1.0)), quotient)
        whole = self.op("Floor", quotient)
        more = w.test("Greater", self.op("Sub", quotient, whole), self.float(0.5))
        whole = w.either(more, self.op("Add", whole, self.float(1.0)), whole)
        exact = self.op("Div", a, b)
        negative = w.test("Less", exact, zero)
        nought = w.either(negative, self.float(-0.0), zero)
        return w.either(w.test("Equal", quotient, zero), nought, whole), rest

    def exactly(self, a: Value) -> Value:
        """An int as a float, and the end of the run where it is none."""
        if torch_dtype(a) is torch.int64:
            beyond = self.w.test("Greater", self.op("Abs", a), self.int(_EXACT))
            self.w.fail_if(beyond, "OverflowError: an int beyond 2**53 beside a float")
        return self.w.cast(a, torch.float64)

    def is_nan(self, a: Value) -> Value:
        """Whether a float is none."""
        return self.w.node("IsNaN", a, dtype=torch.bool, shape=[])

    def is_inf(self, a: Value) -> Value:
        """Whether a float is infinite."""
        return self.w.node("IsInf", a, dtype=torch.bool, shape=[])

    def is_finite(self, a: Value) -> Value:
        """Whether a float is a number."""
        return self.w.flags("Not", self.w.flags("Or", self.is_inf(a), self.is_nan(a)))

    def require_result(self, made: Value, said: str, *given: Value) -> Value:
        """A float, and the end of the run where Python raises: no number, of numbers; infinite, of finite ones."""
        none, beyond = self.is_nan(made), self.is_inf(made)
        for one in given:
            none = self.w.flags("And", none, self.w.flags("Not", self.is_nan(one)))
            beyond = self.w.flags("And", beyond, self.is_finite(one))
        self.w.fail_if(self.w.flags("Or", none, beyond), said)
        return made

    def whole(self, a: Value) -> Value:
        """A float without a fraction as an int."""
        self.w.fail_if(self.w.flags("Not", self.is_finite(a)), "ValueError: cannot convert float to integer")
        beyond = self.w.test("GreaterOrEqual", self.op("Abs", a), self.float(2.0**63))
        self.w.fail_if(beyond, OVERFLOW)
        return self.w.cast(self.w.either(beyond, self.float(0.0), a), torch.int64)


# --- rules: (translator, calculator, Operator) -> the result


def _common(t: Translator, op: Operator) -> tuple[list[Value], str]:
    """The operands as one kind of number: bools are ints."""
    kinds = {t.kind(arg) for arg in op.args}
    kind = "float" if "float" in kinds else "int"
    return [t.number(arg, kind) for arg in op.args], kind


def _arithmetic(t: Translator, c: Calculator, op: Operator) -> Value:
    values, _ = _common(t, op)
    made: Value = getattr(c, _short(op))(*values)
    return made


def _truediv(t: Translator, c: Calculator, op: Operator) -> Value:
    values, kind = _common(t, op)
    floats = [c.exactly(one) for one in values]
    return c.truediv(*floats)


def _floordiv(t: Translator, c: Calculator, op: Operator) -> Value:
    return c.divmod(*_common(t, op)[0])[0]


def _mod(t: Translator, c: Calculator, op: Operator) -> Value:
    return c.divmod(*_common(t, op)[0])[1]


def _pos(t: Translator, c: Calculator, op: Operator) -> Value:
    return _common(t, op)[0][0]


def _abs(t: Translator, c: Calculator, op: Operator) -> Value:
    (value,), kind = _common(t, op)
    if kind == "int":
        t.w.fail_if(t.w.test("Equal", value, c.int(_LEAST)), OVERFLOW)
    return c.op("Abs", value)


def _invert(t: Translator, c: Calculator, op: Operator) -> Value:
    return c.op("BitwiseNot", t.number(op.args[0], "int"))


def _pow(t: Translator, c: Calculator, op: Operator) -> Value:
    values, kind = _common(t, op)
    exponent = op.args[1]
    if _result(op) == "int":
        if type(exponent) is not int or not 0 <= exponent <= 64:
            raise Refused("a power of ints whose exponent is no constant from 0 to 64")
        made, square = c.int(1), values[0]
        while exponent:  # the square of what is left is only needed where something is
            made = c.mul(made, square) if exponent & 1 else made
            exponent >>= 1
            square = c.mul(square, square) if exponent else square
        return made
    base, power = (c.exactly(one) if kind == "int" else one for one in values)
    return c.require_result(c.op("Pow", base, power), "ArithmeticError: this power is no float", base, power)


def _shift(t: Translator, c: Calculator, op: Operator) -> Value:
    value, by = (t.number(arg, "int") for arg in op.args)
    w = t.w
    w.fail_if(w.test("Less", by, c.int(0)), "ValueError: negative shift count")
    by = c.op("Max", by, c.int(0))
    two = c.op("Pow", c.int(2), c.op("Min", by, c.int(62)))
    far = w.test("Greater", by, c.int(62))
    if _short(op) == "lshift":
        w.fail_if(w.flags("And", far, w.flags("Not", w.test("Equal", value, c.int(0)))), OVERFLOW)
        return c.mul(value, two)
    ends = w.either(w.test("Less", value, c.int(0)), c.int(-1), c.int(0))
    return w.either(far, ends, c.divmod(value, two)[0])


_BITS = {"and_": ("And", "BitwiseAnd"), "or_": ("Or", "BitwiseOr"), "xor": ("Xor", "BitwiseXor")}


def _bits(t: Translator, c: Calculator, op: Operator) -> Value:
    of_bools, of_ints = _BITS[_short(op)]
    if all(t.kind(arg) == "bool" for arg in op.args):
        return t.w.flags(of_bools, *(t.number(arg, "bool") for arg in op.args))
    a, b = (t.number(arg, "int") for arg in op.args)
    return c.op(of_ints, a, b)


_TESTS = {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal", "ne": "Equal"}


def _compare(t: Translator, c: Calculator, op: Operator) -> Value:
    kinds = [t.kind(arg) for arg in op.args]
    if "float" in kinds:
        a, b = (c.exactly(t.value(arg)) if kind != "float" else t.value(arg) for arg, kind in zip(op.args, kinds))
    else:
        a, b = (t.number(arg, "int") for arg in op.args)
    made = t.w.test(_TESTS[_short(op)], a, b)
    return t.w.flags("Not", made) if _short(op) == "ne" else made


def _not(t: Translator, c: Calculator, op: Operator) -> Value:
    return t.w.flags("Not", _truth(t, op.args[0]))


def _bool(t: Translator, c: Calculator, op: Operator) -> Value:
    return _truth(t, op.args[0])


def _truth(t: Translator, operand: Any) -> Value:
    if isinstance(operand, Variable) and isinstance(operand.type, TensorType):
        return t.flag(operand)
    t.kind(operand)
    return t.number(operand, "bool")


def _int(t: Translator, c: Calculator, op: Operator) -> Value:
    if len(op.args) > 1:
        raise Refused("int() of text")
    if t.kind(op.args[0]) != "float":
        return t.number(op.args[0], "int")
    value = t.number(op.args[0], "float")
    negative = t.w.test("Less", value, c.float(0.0))
    return c.whole(t.w.either(negative, c.op("Ceil", value), c.op("Floor", value)))


def _float(t: Translator, c: Calculator, op: Operator) -> Value:
    t.kind(op.args[0])
    return t.number(op.args[0], "float")


def _rounded(c: Calculator, a: Value, digits: int) -> Value:
    """``round(a, digits)`` of a float: by the exact value, to the even digit where it is just between two."""
    w, half, scale = c.w, c.float(0.5), c.float(10.0**digits)
    high, low = (c.float(one) for one in halves(10.0**digits))
    scaled = c.op("Mul", a, scale)
    wide = c.op("Mul", a, c.float(SPLIT))
    a_high = c.op("Sub", wide, c.op("Sub", wide, a))
    a_low = c.op("Sub", a, a_high)
    error = c.op("Sub", c.op("Mul", a_high, high), scaled)  # what the product lacks, exactly
    for one, other in ((a_high, low), (a_low, high), (a_low, low)):
        error = c.op("Add", error, c.op("Mul", one, other))
    whole = c.op("Round", scaled)
    rest = c.op("Sub", scaled, whole)
    more = w.flags("And", w.test("Equal", rest, half), w.test("Greater", error, c.float(0.0)))
    less = w.flags("And", w.test("Equal", rest, c.op("Neg", half)), w.test("Less", error, c.float(0.0)))
    whole = w.either(more, c.op("Add", whole, c.float(1.0)), whole)
    whole = w.either(less, c.op("Sub", whole, c.float(1.0)), whole)
    as_it_is = w.test("GreaterOrEqual", c.op("Abs", scaled), c.float(2.0**53))
    return w.either(as_it_is, a, c.op("Div", whole, scale))


def _round(t: Translator, c: Calculator, op: Operator) -> Value:
    digits = op.args[1] if len(op.args) > 1 else None
    kind = t.kind(op.args[0])
    reason = no_digits(digits, kind)
    if reason:
        raise Refused(reason)
    if kind != "float":
        return t.number(op.args[0], "int")
    if isinstance(digits, int):
        return _rounded(c, t.number(op.args[0], "float"), digits)
    return c.whole(c.op("Round", t.number(op.args[0], "float")))


def _extreme(t: Translator, c: Calculator, op: Operator) -> Value:
    kinds = {t.kind(arg) for arg in op.args}
    if len(kinds) != 1:
        raise Refused("min or max of different kinds of numbers")
    (kind,) = kinds
    operator = "Less" if _short(op) == "min" else "Greater"
    found, *rest = (t.number(arg, kind) for arg in op.args)
    for one in rest:
        better = t.w.test(operator, *(t.w.cast(each, torch.int64) if kind == "bool" else each for each in (one, found)))
        found = t.w.either(better, one, found)
    return found


def _select(t: Translator, c: Calculator, op: Operator) -> Value:
    kind = _result(op)
    return t.w.either(t.flag(op.args[0]), t.number(op.args[1], kind), t.number(op.args[2], kind))


def _expect(t: Translator, c: Calculator, op: Operator) -> Value:
    if t.kind(op.args[0]) != op.args[1]:
        raise Refused("a number whose kind only the run knows")
    return t.value(op.args[0])


def _is_none(t: Translator, c: Calculator, op: Operator) -> Value:
    if op.args[0] is None:
        return t.w.constant(True, torch.bool)
    if isinstance(op.args[0], Variable) and isinstance(op.args[0].type, ScalarType):
        return t.w.constant(False, torch.bool)
    raise Refused("a question whether a value of the run is None")


def _is_integer(t: Translator, c: Calculator, op: Operator) -> Value:
    value = t.number(op.args[0], "float")
    return t.w.flags("And", c.is_finite(value), t.w.test("Equal", value, c.op("Floor", value)))


def _item(t: Translator, c: Calculator, op: Operator) -> Value:
    return t.w.cast(t.w.single(t.value(op.args[0])), NUMBERS[_result(op)])


def _size(t: Translator, c: Calculator, op: Operator) -> Value:
    dim = op.args[1]
    value = t.value(op.args[0])
    if isinstance(dim, Variable):
        return c.w.node("Gather", t.w.sizes(value), t.number(dim, "int"), dtype=torch.int64, shape=[])
    return t.w.node("Gather", t.w.sizes(value), c.int(dim), dtype=torch.int64, shape=[])


def _numel(t: Translator, c: Calculator, op: Operator) -> Value:
    return t.w.node("Size", t.value(op.args[0]), dtype=torch.int64, shape=[])


def _dim(t: Translator, c: Calculator, op: Operator) -> Value:
    sizes = t.w.sizes(t.value(op.args[0]))
    return t.w.node("Size", sizes, dtype=torch.int64, shape=[])


_MATH = {
    "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh",
    "sinh": "Sinh", "cosh": "Cosh", "asin": "Asin", "acos": "Acos", "atan": "Atan", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "fabs": "Abs",
}  # fmt: skip


def _math(t: Translator, c: Calculator, op: Operator) -> Value:
    short = _short(op).removeprefix("math.")
    for arg in op.args:
        t.kind(arg)
    value = t.number(op.args[0], "float")
    if short in _MATH and len(op.args) == 1:
        return c.require_result(c.op(_MATH[short], value), _DOMAIN, value)
    if short in ("floor", "ceil", "trunc"):
        if t.kind(op.args[0]) != "float":
            return t.number(op.args[0], "int")
        if short == "trunc":
            return _int(t, c, op)
        return c.whole(c.op(short.capitalize(), value))
    if short == "pow":
        power = t.number(op.args[1], "float")
        return c.require_result(c.op("Pow", value, power), _DOMAIN, value, power)
    if short == "isnan":
        return c.is_nan(value)
    if short == "isinf":
        return c.is_inf(value)
    if short == "isfinite":
        return c.is_finite(value)
    raise Refused(f"math.{short} of {len(op.args)} numbers")


_RULES: dict[str, Callable[[Translator, Calculator, Operator], Value]] = {
    **dict.fromkeys(("add", "sub", "mul", "neg"), _arithmetic), "truediv": _truediv, "floordiv": _floordiv,
    "mod": _mod, "pow": _pow, "pos": _pos, "abs": _abs, "invert": _invert, "lshift": _shift, "rshift": _shift,
    **dict.fromkeys(_BITS, _bits), **dict.fromkeys(_TESTS, _compare), "not_": _not, "bool": _bool, "truth": _bool,
    "int": _int, "float": _float, "round": _round, "min": _extreme, "max": _extreme, "select": _select,
    "expect": _expect, "is_none": _is_none, "is_integer": _is_integer, "item": _item, "number": _item, "index": _item,
    "size": _size, "numel": _numel, "dim": _dim,
    **{f"math.{name}": _math for name in (*_MATH, "floor", "ceil", "trunc", "pow", "isnan", "isinf", "isfinite")},
}  # fmt: skip


_MOST = {"min": 2**31, "max": 2**31, "select": 3}
"""How many arguments a rule takes, where it may be more than two."""


def _short(op: Operator) -> str:
    return op.name.removeprefix("scalar.")


def _result(op: Operator) -> str:
    type_ = op.outputs[0].type
    assert isinstance(type_, ScalarType)
    return type_.kind


def emit(t: Translator, op: Operator) -> None:
    """Any scalar Operator."""
    type_ = op.outputs[0].type
    if isinstance(type_, ScalarType) and type_.kind == "str":
        t.give(op.outputs[0], text_of(t, op))
        return
    short = _short(op)
    rule = _RULES.get(short)
    if rule is None:
        raise Refused("there is no rule for it")
    if op.kwargs or len(op.args) > _MOST.get(short, 2):
        raise Refused("this many arguments")
    t.give(op.outputs[0], rule(t, Calculator(t.w), op))


def operators() -> list[str]:
    """The scalar operators that have a rule."""
    return sorted(_RULES)


__all__ = ["Calculator", "emit", "operators"]
