"""The Python objects that a trace knows: from outside, among the arguments, made by the function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.tracer.ambient.session_parts import DEEP, ITEMS, KEPT, SessionPart, state

if TYPE_CHECKING:
    import torch

    from runtime.ir import Location


@dataclass(eq=False)
class KnownObjects(SessionPart):
    """Objects by identity."""

    externals: dict[int, tuple[Any, tuple[Any, ...] | None]] = state(ITEMS, dict)
    """Python objects that existed before the trace, with their path among the arguments if they are there."""
    given: dict[int, tuple[Any, tuple[Any, ...]]] = state(KEPT, dict)  # never changes
    """Arguments that are told apart by what they hold, with their paths: each call gives back its own."""
    originals: dict[int, int] = state(KEPT, dict)  # nor does this
    """The caller's containers that have a copy among the arguments: their numbers, by identity."""
    copies: dict[int, int] = state(KEPT, dict)  # nor does this
    """Those copies: the same numbers, by identity."""
    generators: dict[int, tuple[Any, Any, Any]] = state(ITEMS, dict)
    """Random generators that the function makes, by identity (``recording/made_generators``): each with what stands for
    it in the Program, and with its state, in which it stays while tracing, and the place where it is made."""
    created: dict[int, Any] = state(ITEMS, dict)
    """Objects, other than containers, that were made while tracing."""
    kept: dict[int, Any] = state(ITEMS, dict)
    """What later calls are given again, by identity: results of cached functions."""
    cached: dict[int, tuple[Any, list[Any], str, Location | None]] = state(ITEMS, dict)
    """Containers and objects that a cached function made in the trace, by identity: what they held then, the function's
    name, and the place of the call."""
    numbers: set[int] = state(ITEMS, set)
    """What `id` and `hash` gave for objects that are the same in each call."""
    constructing: set[int] = state(ITEMS, set)
    """Objects whose ``__init__`` is being traced, by identity."""
    hung: dict[int, tuple[torch.Tensor, set[str]]] = state(DEEP, dict)
    """Tensors of the trace, by identity, on which users' attributes hang, and the attributes' names."""


__all__ = ["KnownObjects"]
