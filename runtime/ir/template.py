"""Templates of a call's arguments: what stands in the place of a tensor, and of a container that stands there again.

    f(x, {"mask": m, "n": 3}, x)  ->  {"a": TensorSlot(0), "b": {"mask": TensorSlot(1), "n": 3}, "c": TensorSlot(0)}

A trace makes one of its call, and an artefact keeps it: a later call is held against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KeyPath = tuple[Any, ...]
"""The way to a part of nested containers: keys, indices and field names; among arguments, a name before them."""


@dataclass(frozen=True)
class TensorSlot:
    """Where a tensor stands: its position among the call's tensors, and among the Program's inputs."""

    index: int


@dataclass(frozen=True)
class Again:
    """Where a container stands that stood among the arguments before: its number."""

    number: int


__all__ = ["Again", "KeyPath", "TensorSlot"]
