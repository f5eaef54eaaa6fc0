"""When a value needs a gradient: always, never, or when one of some flags is true (``tape.Activity``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from runtime.autodiff.tape import Activity
from runtime.ir import Operand, Variable
from runtime.tracer.recording.session import Session


def join_activity(parts: Iterable[Activity]) -> Activity:
    """True if any part is; else all their flags together."""
    flags: frozenset[Variable] = frozenset()
    for part in parts:
        if part is True or isinstance(part, Variable):  # an item of a list, whichever
            return True
        if part:
            flags |= part
    return flags or False


def any_of(session: Session, flags: Activity) -> Operand:
    """A boolean, or its Variable, that is true if one of the flags is; a list's flags as they are."""
    if isinstance(flags, (bool, Variable)):
        return flags
    ordered = sorted(flags, key=lambda var: var.name)
    result: Operand = ordered[0]
    for flag in ordered[1:]:
        (result,) = session.emit("scalar.or_", [result, flag])
    return result


def can_carry(value: Any) -> bool:
    """Whether a value can have a gradient at all."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


__all__ = ["any_of", "can_carry", "join_activity"]
