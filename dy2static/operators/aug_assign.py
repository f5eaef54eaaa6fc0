"""Augmented assignment: in place where the value allows it.

    x += y   ->   x = aug("+=", x, y)
"""

from __future__ import annotations

import array
import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy
import torch

from dy2static.operators import boundary, growing
from dy2static.operators.observed import observed
from dy2static.operators.staging import Choice, Session, Staged, active, distribute

_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "@=": operator.imatmul, "/=": operator.itruediv,
    "//=": operator.ifloordiv, "%=": operator.imod, "**=": operator.ipow, "<<=": operator.ilshift,
    ">>=": operator.irshift, "&=": operator.iand, "^=": operator.ixor, "|=": operator.ior,
}  # fmt: skip


_WATCHED = (list, dict, set, deque, bytearray, array.array, memoryview, numpy.ndarray)
"""Types of Python's own, and NumPy's, that are changed in place."""


def aug(op: str, target: Any, value: Any) -> Any:
    """What ``target <op> value`` leaves in the target.

    >>> aug("+=", 1, 2), aug("*=", [0], 3)
    (3, [0, 0, 0])
    """
    session = active()
    if session is None:
        return _IN_PLACE[op](target, value)
    return _traced(session, op, target, value)


def _traced(session: Session, op: str, target: Any, value: Any) -> Any:
    if isinstance(target, Choice):
        return distribute(session, target, lambda option: _traced(session, op, option, value))
    if isinstance(value, Choice):
        return distribute(session, value, lambda option: _traced(session, op, target, option))
    if growing.is_growing(target):
        growing.add_in_place(session, target, op, value)
        return target
    if isinstance(target, torch.nn.Module):
        from dy2static.operators.builtins import module_methods

        module_methods.require_made_inside(session, target)
    if isinstance(target, (list, dict, set, deque)):
        session.journal.note_content(target)
    if not isinstance(target, (list, deque)) or isinstance(target, deque) and target.maxlen is not None:
        boundary.require_none(session, f"'{op}'", [value, target])
    if isinstance(target, torch.Tensor) and isinstance(value, Staged):
        value = session.sizes.symbolic(value)
    if type(target) not in _WATCHED:
        return _IN_PLACE[op](target, value)
    with observed(session, target):
        result = _IN_PLACE[op](target, value)
    return result
