"""Python's arithmetic on tensors without dimensions: int64, float64 and bool, with Python's rules.

Where Python raises, or an int needs more than 64 bits, the run ends.
"""

from __future__ import annotations

import torch

from runtime.export.shared import SPLIT, halves
from runtime.export.torch_export.translator import Translator, aten
from runtime.export.torch_export.values import number

LEAST = -(2**63)
OVERFLOW = "OverflowError: an int beyond 64 bits"
_DOMAIN = "ValueError: math domain error, or a result too large"
_EXACT = 2**53
"""Up to here every int is a float64."""

Tensor = torch.Tensor


def either(flag: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``a if flag else b``."""
    made: Tensor = aten.where.self(flag, a, b)
    return made


def add(t: Translator, a: Tensor, b: Tensor) -> Tensor:
    """``a + b``."""
    made: Tensor = aten.add.Tensor(a, b)
    if made.dtype is torch.int64:
        signs = aten.bitwise_and.Tensor(aten.bitwise_xor.Tensor(a, made), aten.bitwise_xor.Tensor(b, made))
        t.fail_if(aten.lt.Scalar(signs, 0), OVERFLOW)
    return made


def sub(t: Translator, a: Tensor, b: Tensor) -> Tensor:
    """``a - b``."""
    made: Tensor = aten.sub.Tensor(a, b)
    if made.dtype is torch.int64:
        signs = aten.bitwise_and.Tensor(aten.bitwise_xor.Tensor(a, b), aten.bitwise_xor.Tensor(a, made))
        t.fail_if(aten.lt.Scalar(signs, 0), OVERFLOW)
    return made


def mul(t: Translator, a: Tensor, b: Tensor) -> Tensor:
    """``a * b``."""
    made: Tensor = aten.mul.Tensor(a, b)
    if made.dtype is torch.int64:
        about = aten.abs.default(aten.mul.Tensor(number(a, "float"), number(b, "float")))
        t.fail_if(aten.ge.Scalar(about, 9.2233720368547e18), OVERFLOW)
    return made


def neg(t: Translator, a: Tensor) -> Tensor:
    """``-a``."""
    made: Tensor = sub(t, number(0, "int"), a) if a.dtype is torch.int64 else aten.neg.default(a)
    return made


def _divisor(t: Translator, b: Tensor, said: str, safe: bool) -> Tensor:
    if safe:
        return b
    none = aten.eq.Scalar(b, 0)
    t.fail_if(none, f"ZeroDivisionError: {said}")
    return either(none, aten.ones_like.default(b), b)


def truediv(t: Translator, a: Tensor, b: Tensor, safe: bool) -> Tensor:
    """``a / b`` of floats. ``safe``: the divisor is known not to be zero."""
    made: Tensor = aten.div.Tensor(a, _divisor(t, b, "division by zero", safe))
    return made


def divmod_(t: Translator, a: Tensor, b: Tensor, safe: bool) -> tuple[Tensor, Tensor]:
    """``a // b`` and ``a % b``: the remainder has the divisor's sign. ``safe``: the divisor is known not to be zero."""
    b = _divisor(t, b, "integer division or modulo by zero", safe)
    if a.dtype is torch.int64:
        least = aten.eq.Scalar(a, LEAST)
        t.fail_if(least, OVERFLOW)
        a = either(least, aten.zeros_like.default(a), a)  # divided by -1 it would end the process
        rest = aten.remainder.Tensor(a, b)
        return aten.div.Tensor_mode(aten.sub.Tensor(a, rest), b, rounding_mode="trunc"), rest
    rest = aten.fmod.Tensor(a, b)
    quotient = aten.div.Tensor(aten.sub.Tensor(a, rest), b)
    none = aten.eq.Scalar(rest, 0)
    signs = aten.ne.Tensor(aten.lt.Scalar(rest, 0), aten.lt.Scalar(b, 0))
    other = aten.logical_and.default(aten.logical_not.default(none), signs)
    zero = aten.copysign.Tensor(aten.zeros_like.default(b), b)
    rest = either(none, zero, either(other, aten.add.Tensor(rest, b), rest))
    quotient = either(other, aten.sub.Scalar(quotient, 1.0), quotient)
    whole = aten.floor.default(quotient)
    more = aten.gt.Scalar(aten.sub.Tensor(quotient, whole), 0.5)
    whole = either(more, aten.add.Scalar(whole, 1.0), whole)
    nought = aten.copysign.Tensor(aten.zeros_like.default(b), aten.div.Tensor(a, b))
    return either(aten.eq.Scalar(quotient, 0), nought, whole), rest


def exactly(t: Translator, a: Tensor) -> Tensor:
    """An int as a float, and the end of the run where it is none."""
    if a.dtype is torch.int64:
        inside = aten.logical_and.default(aten.ge.Scalar(a, -_EXACT), aten.le.Scalar(a, _EXACT))
        t.fail_if(aten.logical_not.default(inside), "OverflowError: an int beyond 2**53 beside a float")
    return number(a, "float")


def is_finite(a: Tensor) -> Tensor:
    """Whether a float is a number."""
    made: Tensor = aten.isfinite.default(a)
    return made


def require_result(t: Translator, made: Tensor, *given: Tensor) -> Tensor:
    """A result of ``math``, and the end of the run where Python raises: no number, of numbers; infinite, of finite."""
    wrong, beyond = aten.isnan.default(made), aten.isinf.default(made)
    for one in given:
        wrong = aten.logical_and.default(wrong, aten.logical_not.default(aten.isnan.default(one)))
        beyond = aten.logical_and.default(beyond, is_finite(one))
    t.fail_if(aten.logical_or.default(wrong, beyond), _DOMAIN)
    return made


def rounded(a: Tensor, digits: int) -> Tensor:
    """``round(a, digits)`` of a float: by the exact value, to the even digit where it is just between two."""
    scale = 10.0**digits
    high, low = halves(scale)
    scaled = aten.mul.Tensor(a, scale)
    wide = aten.mul.Tensor(a, SPLIT)
    a_high = aten.sub.Tensor(wide, aten.sub.Tensor(wide, a))
    a_low = aten.sub.Tensor(a, a_high)
    error = aten.sub.Tensor(aten.mul.Tensor(a_high, high), scaled)  # what the product lacks, exactly
    for one, other in ((a_high, low), (a_low, high), (a_low, low)):
        error = aten.add.Tensor(error, aten.mul.Tensor(one, other))
    whole = aten.round.default(scaled)
    rest = aten.sub.Tensor(scaled, whole)
    more = aten.logical_and.default(aten.eq.Scalar(rest, 0.5), aten.gt.Scalar(error, 0.0))
    less = aten.logical_and.default(aten.eq.Scalar(rest, -0.5), aten.lt.Scalar(error, 0.0))
    whole = either(more, aten.add.Tensor(whole, 1.0), either(less, aten.sub.Tensor(whole, 1.0), whole))
    return either(aten.ge.Scalar(aten.abs.default(scaled), 2.0**53), a, aten.div.Tensor(whole, scale))


def whole(t: Translator, a: Tensor) -> Tensor:
    """A float without a fraction as an int."""
    t.fail_if(aten.logical_not.default(is_finite(a)), "ValueError: cannot convert float to integer")
    inside = aten.logical_and.default(aten.lt.Scalar(a, 2.0**63), aten.ge.Scalar(a, -(2.0**63)))
    t.fail_if(aten.logical_not.default(inside), OVERFLOW)
    return number(either(inside, a, aten.zeros_like.default(a)), "int")


__all__ = ["LEAST", "OVERFLOW", "add", "divmod_", "either", "exactly", "is_finite", "mul", "neg", "require_result",
           "rounded", "sub", "truediv", "whole"]  # fmt: skip
