"""Staged numbers where an operator's schema says ``float``: kernels read such a number, shape rules do not.

While tracing a plain number stands in. It has a value that nothing else has, so that the recorder finds it among the
arguments of the operator, and writes the Variable of the staged number into the Program instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runtime.ir import Operator
from runtime.tracer.scalars import Staged

if TYPE_CHECKING:
    from runtime.tracer.session import Session

_STEP = 2.0**-40


def stand_in(session: Session, number: Staged, like: float) -> float:
    """A number near ``like``, which is not 0, that stands for a staged one."""
    assert like, "a number near 0 would be 0, which code uses"
    value = like * (1 + _STEP * (len(session.float_operands) + 1))
    session.float_operands[value] = number
    return value


def is_used(number: Staged, ops: Iterable[Operator]) -> bool:
    """Whether an Operator reads the number: it did not get lost in code between the call and the operator."""
    return any(number.var in op.inputs or any(number.var in block.captures() for block in op.blocks) for op in ops)


def operand(session: Session, value: Any) -> Any:
    """What a number stands for, the number itself if it stands for none."""
    return session.float_operands.get(value, value)
