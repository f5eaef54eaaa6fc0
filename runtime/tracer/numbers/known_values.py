"""What is known while tracing of values that only a run computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Block, Variable
from runtime.tracer.ambient.session_parts import ITEMS, KEPT, SessionPart, state
from runtime.tracer.numbers.scalars import Staged

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Scope


@dataclass(eq=False)
class KnownValues(SessionPart):
    """Facts about numbers, tensors made of them, and sparse tensors."""

    number_operands: dict[int | float, Staged] = state(ITEMS, dict)
    """What plain numbers stand for where operators take no others (see ``number_operands``)."""
    special_numbers: dict[int | float, frozenset[Any]] = state(ITEMS, dict)
    """For those: the values that have paths of their own (see ``recording/sampled_shapes``)."""
    divisors: list[tuple[Scope, Variable]] = state(ITEMS, list)
    """Numbers that are not 0 in a Block."""
    fitting: list[tuple[Scope, Variable, str, type[Exception]]] = state(ITEMS, list)
    """Numbers and texts for which an Operator of a name does not raise an exception, while a Block is open."""
    literals: dict[Variable, torch.Tensor] = state(ITEMS, dict)
    """Variables that hold tensors made from Python data, with what they hold."""
    # What is so of a fake stays so.
    any_layout: torch_internals.TensorDict[bool] = state(KEPT, torch_internals.TensorDict)
    """Fake results whose memory layout depends on a number that is only known while the Program runs."""
    sampled: torch_internals.TensorDict[list[int] | None] = state(KEPT, torch_internals.TensorDict)
    """Fake results of which nothing is known but what some samples showed, and the order of their dimensions in memory
    if that is among it (see ``recording/sampled_shapes``)."""
    sparse_counts: dict[tuple[Variable, Block], torch.SymInt] = state(ITEMS, dict)
    """How many elements sparse values hold, by value and the Block where that was asked (see
    ``recording/sparse_parts``)."""
    sparse_orders: set[Variable] = state(ITEMS, set)
    """Sparse values of which it is known whether they are coalesced."""


__all__ = ["KnownValues"]
