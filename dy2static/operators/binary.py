"""Operators of what may be a set, or a view of a dict, whose items differ between paths, and of users' classes."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

from dy2static.operators import boundary, user_methods
from dy2static.operators.staging import Choice, active, distribute
from dy2static.operators.user_methods import NOT_USERS, operated
from runtime.tracer.containers import opened

_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "*": operator.mul, "@": operator.matmul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "-": operator.sub, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def binary(a: Any, op: str, b: Any) -> Any:
    """``a <op> b``.

    >>> binary({1, 2}, "-", {1}), binary(1, "<", 2)
    ({2}, True)
    """
    session = active()
    if session is None:
        return _PLAIN[op](a, b)
    first, second = opened(a), opened(b)
    if first is not a and isinstance(first, Choice):
        return distribute(session, first, lambda option: binary(option, op, option if b is a else b))
    if second is not b and isinstance(second, Choice):
        return distribute(session, second, lambda option: binary(a, op, option))
    result = operated(session, a, op, b)
    if result is not NOT_USERS:
        return result
    if op in _ORDER and isinstance(a, _SEQUENCES) and isinstance(b, _SEQUENCES):  # Python would compare lengths as well
        boundary.require_none(session, f"'{op}'", (a, b))
    return _PLAIN[op](a, b)


_ORDER = ("<", "<=", ">", ">=")
_SEQUENCES = (list, tuple, deque)


_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}


def unary(op: str, value: Any) -> Any:
    """``<op> value``.

    >>> unary("-", 1)
    -1
    """
    session = active()
    result = NOT_USERS if session is None else user_methods.unary(session, op, value)
    return _UNARY[op](value) if result is NOT_USERS else result
