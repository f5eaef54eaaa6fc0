"""Lists from outside that a function only adds to, call after call: what they held before is no matter.

A log of losses, what a hook collects. The cache opens such a list once it was seen changing, so that its length and
items are no guards; whoever asks the list for more than to take items begins the trace again with it as it is.
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.shared.staging import Session
from runtime.tracer.values import structure

_ADDING = ("append", "extend")


def added_to(session: Session, target: Any, name: str) -> list[Any] | None:
    """Where what a method adds to a list belongs, if the trace only adds to that list."""
    found = structure.before(target) if session.call.varying and name in _ADDING else None
    return None if found is None else found.added


__all__ = ["added_to"]
