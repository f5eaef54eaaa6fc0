"""Functions of two numbers that the tests of exported numbers run."""

from __future__ import annotations

import math


def add(a, b):
    return a.item() + b.item()


def sub(a, b):
    return a.item() - b.item()


def mul(a, b):
    return a.item() * b.item()


def floordiv(a, b):
    return a.item() // b.item()


def mod(a, b):
    return a.item() % b.item()


def both(a, b):
    return divmod(a.item(), b.item())


def truediv(a, b):
    return a.item() / b.item()


def neg(a, b):
    return -a.item()


def absolute(a, b):
    return abs(a.item())


def invert(a, b):
    return ~a.item()


def conjunction(a, b):
    return a.item() & b.item()


def disjunction(a, b):
    return a.item() | b.item()


def exclusive(a, b):
    return a.item() ^ b.item()


def left(a, b):
    return a.item() << b.item()


def right(a, b):
    return a.item() >> b.item()


def cube(a, b):
    return a.item() ** 3


def less(a, b):
    return a.item() < b.item()


def equal(a, b):
    return a.item() == b.item()


def differ(a, b):
    return a.item() != b.item()


def least(a, b):
    return min(a.item(), b.item())


def most(a, b):
    return max(a.item(), b.item())


def negation(a, b):
    return not a.item()


def short(a, b):
    return bool(a.item()) and b.item() > 2


def to_float(a, b):
    return float(a.item())


def more(a, b):
    return a.item() + 0.5


def times(a, b):
    return a.item() * True


def at_least(a, b):
    return a.item() >= 2.5


def to_int(a, b):
    return int(a.item())


def nearest(a, b):
    return round(a.item())


def to_digits(a, b):
    one = a.item()
    return round(one, 0), round(one, 1), round(one, 2), round(one, 5), round(one, 22)


def floor(a, b):
    return math.floor(a.item())


def ceil(a, b):
    return math.ceil(a.item())


def trunc(a, b):
    return math.trunc(a.item())


def isnan(a, b):
    return math.isnan(a.item())


def isfinite(a, b):
    return math.isfinite(a.item())


def root(a, b):
    return math.sqrt(a.item())


def whole(a, b):
    return a.item().is_integer()


TABLE = {
    "a + b": add, "a - b": sub, "a * b": mul, "a // b": floordiv, "a % b": mod, "divmod": both, "a / b": truediv,
    "-a": neg, "abs(a)": absolute, "~a": invert, "a & b": conjunction, "a | b": disjunction, "a ^ b": exclusive,
    "a << b": left, "a >> b": right, "a ** 3": cube, "a < b": less, "a == b": equal, "a != b": differ, "min": least,
    "max": most, "not a": negation, "bool(a) and b": short, "float(a)": to_float, "a + 0.5": more, "a * True": times,
    "a >= 2.5": at_least, "int(a)": to_int, "round(a)": nearest, "round(a, n)": to_digits,
    "floor": floor, "ceil": ceil, "trunc": trunc,
    "isnan": isnan, "isfinite": isfinite, "sqrt": root, "is_integer": whole,
}  # fmt: skip
