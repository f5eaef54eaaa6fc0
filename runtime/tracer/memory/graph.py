"""What is known of autograd's graph while it is traced: where it begins, and what was asked of it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.ir import Location, Operator, Variable
from runtime.tracer.ambient.session_parts import ITEMS, KEPT, VALUE, SessionPart, state
from runtime.tracer.memory.storage_table import TensorInfo

if TYPE_CHECKING:
    import torch

    from runtime.tracer.memory.conditions import PathCondition
    from runtime.tracer.recording.gradient_sources import Taken
    from runtime.tracer.recording.hook_calls import HookRecord
    from runtime.tracer.recording.hooked_tensors import Hooked
    from runtime.tracer.recording.leaf_changes import LeafChanges


Steps = frozenset[tuple[Operator, bool]]


@dataclass(frozen=True, eq=False)
class UsedUp:
    """A gradient that did not retain the graph."""

    ops: frozenset[Operator]
    """The Operators that it was taken through."""
    where: Location | None
    when: PathCondition
    """On which paths it was asked for."""
    taken: Taken
    """The paths that led there, of branches that are over."""
    on: Callable[[Taken], Steps] | None = None
    """The ``steps`` that it was taken through on some paths."""
    met: frozenset[Variable] = frozenset()
    """What it met on the way."""
    steps: Steps = frozenset()
    """``ops``, and whether each was taken in the last iteration of the closed loops that it is in."""
    sure: frozenset[Operator] = frozenset()
    """Those of ``ops`` that it met on a way that leads through no closed loop."""


@dataclass(eq=False)
class Graph(SessionPart):
    """Leaves, gradients and detached tensors of a trace."""

    gradients: dict[int, Any] = state(ITEMS, dict)  # what they hold has a place in the journal
    """What stands for the ``.grad`` of tensors, by identity (see ``recording/leaf_gradients``)."""
    retaining: dict[int, Any] = state(ITEMS, dict)  # likewise
    """By identity of tensors: what stands for those on which ``retain_grad()`` was called (``leaf_gradients``)."""
    hooks: dict[int, Any] = state(ITEMS, dict)  # likewise
    """By identity of leaves: the hooks that the function put on them (``leaf_gradients``)."""
    hooked: dict[Variable, Hooked] = state(ITEMS, dict)
    """The tensors that are no leaves, and got hooks (``hooked_tensors``)."""
    hook_records: dict[Operator, HookRecord] = state(ITEMS, dict)
    """By their Operators: what is known of these hooks (``hook_calls``)."""
    hook_functions: dict[str, Any] = state(ITEMS, dict)
    """Hooks that each run's backward calls, by their names in the Program."""
    hooks_heard: set[Operator] = state(ITEMS, set)
    """Those that a gradient went through."""
    formulas: dict[Operator, Callable[[], dict[Variable, Operator]]] = state(ITEMS, dict)
    """What gradients are made of that ``create_graph`` gave a history: the nodes of it (``recording/formulas``)."""
    used_up: tuple[UsedUp, ...] = state(VALUE, ())
    """The gradients that were asked for and did not retain the graph."""
    leaf_changes: LeafChanges = state(ITEMS, dict)
    """Tensors older than the path that the trace is on, whose ``requires_grad`` it set (``recording/leaf_changes``)."""
    path_start: int = state(VALUE, 0)
    """Tensors with smaller numbers are older than that path; 0: it is the main one."""
    made_leaves: bool = state(VALUE, False)
    """Whether ``requires_grad_()`` made any tensor the start of a graph."""
    asked_flags: set[int] = state(KEPT, set)  # a failed try asked, too
    """Tensors, by identity, of which the function asked whether they need a gradient."""
    zero_gradients: set[Variable] = state(ITEMS, set)
    """Leaves that ``materialize_grads`` made, not the user."""
    bare: weakref.WeakKeyDictionary[TensorInfo, PathCondition] = state(ITEMS, weakref.WeakKeyDictionary)
    """For a view that was made where its memory had no history: when that is so where the trace stands. Until it is
    read PyTorch takes it for a leaf."""
    bare_in: weakref.WeakKeyDictionary[TensorInfo, Any] = state(ITEMS, weakref.WeakKeyDictionary)
    """For such views the scope of the Block in which that was noted first: those of closed Blocks are gone."""
    gradients_asked: int = state(VALUE, 0)
    """How often a gradient was asked for."""
    grad_switches: int = state(VALUE, 0)
    """How often the user's code has set whether gradients are on."""
    autocast_asked: int = state(VALUE, 0)
    """How often the user's code has asked for the autocast state."""
    detaching: str | None = state(VALUE)
    """Set while the user's code detaches a tensor: by what name."""
    inner: torch.Tensor | None = state(VALUE)
    """The tensor that the last function of torch detached on its own: a factory gives the detached one."""


__all__ = ["Graph", "UsedUp"]
