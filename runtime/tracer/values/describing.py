"""What a structure is, in the words of an error message."""

from __future__ import annotations

from runtime.kinds import is_a
from runtime.tracer.values import structure


def describe(s: structure.Structure) -> str:
    """``a float32 tensor of 2 dimensions``, ``a tuple of 3 items``; of several, the last that was found."""
    if is_a(s, structure.Known):
        return "None" if s.value is None else f"a {type(s.value).__name__}"
    if is_a(s, structure.Number):
        return f"a Python {s.kind}"
    if is_a(s, structure.Tensor):
        return f"a {str(s.dtype).removeprefix('torch.')} tensor of {_count(len(s.shape), 'dimension')}"
    if is_a(s, structure.Sequence):
        return f"a {s.kind.__name__} of {_count(len(s.items), 'item')}"
    if is_a(s, structure.Fields):
        return f"a {s.cls.__name__} of {_count(len(s.keys), 'item')}"
    if is_a(s, structure.Made):
        return f"a {s.cls.__name__}"
    if is_a(s, structure.Array):
        return "a list that grows"
    if is_a(s, structure.Reference):
        return "a list"
    return describe(s.options[-1])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


__all__ = ["describe"]
