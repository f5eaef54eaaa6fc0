"""Values on their way into torch and back: staged numbers become symbolic ones, and symbolic results staged numbers."""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.calls.sequences import StagedSize
from dy2static.operators.shared.staging import Session, Staged, any_staged
from runtime.kinds import is_a

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def to_torch(session: Session, value: Any) -> Any:
    """The value with symbolic numbers in place of staged ones, at any depth of lists, tuples, dicts and slices.

    A ``torch.Size`` stays one: constructors that take data or sizes (``torch.Tensor``, ``x.new``) ask for the class.
    """
    if is_a(value, Staged):
        return value if value.kind == "str" else session.sizes.symbolic(value)
    if is_a(value, StagedSize):
        sizes = tuple(to_torch(session, item) for item in value)
        return sizes if any(is_a(size, torch.SymBool) for size in sizes) else torch.Size(sizes)
    if type(value) in (list, tuple):
        return type(value)(to_torch(session, item) for item in value) if any_staged(value) else value
    if type(value) is dict:
        return {key: to_torch(session, item) for key, item in value.items()}
    if type(value) is slice:
        return slice(*(to_torch(session, part) for part in (value.start, value.stop, value.step)))
    return value


def from_torch(session: Session, value: Any) -> Any:
    """The value with staged numbers in place of symbolic ones."""
    if is_a(value, _SYMBOLIC):
        return session.sizes.staged(value)
    if is_a(value, torch.Size):
        return StagedSize(from_torch(session, size) for size in value)
    if type(value) in (list, tuple) and any(is_a(item, _SYMBOLIC) for item in value):
        return type(value)(from_torch(session, item) for item in value)
    return value
