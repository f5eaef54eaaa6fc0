"""Binary operators and comparisons of what may be a set, or a view of a dict, whose items differ between paths."""

from __future__ import annotations

import operator
from typing import Any

from dy2static.operators.staging import Choice, active, distribute
from runtime.tracer.containers import opened

_PLAIN = {
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
    return _PLAIN[op](a, b)
