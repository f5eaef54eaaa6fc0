"""When a value needs a gradient: a path condition, or for the items of a list a list of flags (``tape.Activity``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from runtime.autodiff.tape import Activity
from runtime.ir import Operand, Variable
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition
from runtime.tracer.recording.session import Session


def join_activity(parts: Iterable[Activity]) -> PathCondition:
    """When any part is; an item of a list, whichever, always."""
    result = NEVER
    for part in parts:
        result |= ALWAYS if isinstance(part, Variable) else part
    return result


def is_always(activity: Activity | None) -> bool:
    """Whether a value needs a gradient on every path, all items of a list included."""
    return isinstance(activity, PathCondition) and activity.always


def is_never(activity: Activity) -> bool:
    """Whether it needs one on no path."""
    return isinstance(activity, PathCondition) and activity.never


def is_known(activity: Activity) -> bool:
    """Whether it is one of these two."""
    return is_always(activity) or is_never(activity)


def as_operand(session: Session, activity: Activity) -> Operand:
    """A boolean, or its Variable, that is true when a value needs a gradient; a list's flags as they are."""
    return activity if isinstance(activity, Variable) else activity.operand(session)


def can_carry(value: Any) -> bool:
    """Whether a value can have a gradient at all."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


__all__ = ["as_operand", "can_carry", "is_always", "is_known", "is_never", "join_activity"]
