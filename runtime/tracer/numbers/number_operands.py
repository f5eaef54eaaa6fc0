"""Staged numbers where an operator's schema says ``int`` or ``float``: numbers that only its kernel reads.

While tracing a plain number stands in. It has a value that nothing else has, so that the recorder finds it among the
arguments of the operator, and writes the Variable of the staged number into the Program instead. What the result looks
like is found by trying several numbers in its place (``sampled_shapes``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runtime.ir import Operator
from runtime.kinds import is_a
from runtime.tracer.numbers.scalars import Staged

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_STEP = 2.0**-40
_FIRST = 2**61 + 0x5D2
"""Ints from here on stand for staged ones: no size, count or offset of a tensor is near."""


def stand_in(session: Session, number: Staged, like: float) -> float:
    """A float near ``like``, which is not 0, that stands for a staged number."""
    assert like, "a number near 0 would be 0, which code uses"
    value = like * (1 + _STEP * (len(session.values.number_operands) + 1))
    session.values.number_operands[value] = number
    return value


def int_stand_in(session: Session, number: Staged) -> int:
    """An int that stands for a staged one."""
    value = _FIRST + len(session.values.number_operands)
    session.values.number_operands[value] = number
    return value


def is_used(number: Staged, ops: Iterable[Operator]) -> bool:
    """Whether an Operator reads the number: it did not get lost in code between the call and the operator."""
    return any(number.var in op.inputs or any(number.var in block.captures() for block in op.blocks) for op in ops)


def of(session: Session, value: Any) -> Staged | None:
    """The staged number that a plain one stands for."""
    return session.values.number_operands.get(value) if type(value) in (int, float) else None


def must_be_tried(session: Session, values: Iterable[Any]) -> bool:
    """Whether there is a number among a call's arguments that the shape of a result may depend on: one that stands for
    an int, or is in a list (of scales)."""
    if not session.values.number_operands:
        return False
    for value in values:
        if is_a(value, (list, tuple)):
            if any(of(session, item) is not None for item in value):
                return True
        elif type(value) is int and of(session, value) is not None:
            return True
    return False


__all__ = ["int_stand_in", "is_used", "must_be_tried", "of", "stand_in"]
