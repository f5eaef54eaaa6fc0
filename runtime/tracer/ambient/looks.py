"""What a trace keeps so that a text can name the autograd node of any tensor (``histories``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from runtime import torch_internals
from runtime.ir import Block, Operator, Variable

if TYPE_CHECKING:
    from runtime.tracer.memory.deferred import LoopValue, PathEnd
    from runtime.tracer.memory.storage_table import TensorInfo
    from runtime.tracer.recording.session import Scope


class Look(NamedTuple):
    """What the type of a tensor's Variable does not tell."""

    requires_grad: bool
    strides: tuple[Any, ...] | None
    device: torch.device
    sometimes: bool = False
    """Whether it requires grad in some runs only."""


@dataclass
class Looks:
    """Facts about Variables that were read, and where constructs are."""

    of: dict[Variable, Look] = field(default_factory=dict)
    path_ends: dict[Operator, tuple[PathEnd, ...]] = field(default_factory=dict)
    """Where the paths of a construct end: one each of ``cond`` and ``switch``, the body of ``while_loop``."""
    loops: dict[Block, tuple[Operator, PathEnd, Scope]] = field(default_factory=dict)
    """By a loop's body: its Operator, its end, and where it stands."""
    carried: dict[tuple[Block, Variable], LoopValue] = field(default_factory=dict)
    """By a loop's body and one of its arguments: the name that the loop carries beside it, where a text asked."""
    node_names: dict[Operator, str] = field(default_factory=dict)
    """The names of the autograd nodes that users' own functions make."""
    identities: dict[Operator, Block] = field(default_factory=dict)
    """Operators of ours that give what they are given, and make no node in eager; with the Block that each is in."""

    def note(self, var: Variable, fake: torch.Tensor, info: TensorInfo) -> None:
        """A tensor was read: ``fake`` stands for it. Its memory may not have been read itself."""
        known = self.of.get(var)
        if known is None or (known.requires_grad, known.sometimes) != (info.requires_grad, info.grad_in_some_runs):
            strides = torch_internals.strides_of(fake) if fake.layout is torch.strided else None
            self.of[var] = Look(info.requires_grad, strides, fake.device, info.grad_in_some_runs)
        if info.steps:
            self.note_memory(info, fake)

    def note_memory(self, info: TensorInfo, fake: torch.Tensor) -> None:
        """The memory that a tensor is a view of, or is, may not have been read itself."""
        if info.storage.value not in self.of:
            strides = torch_internals.strides_of(fake) if not info.steps and fake.layout is torch.strided else None
            self.of[info.storage.value] = Look(info.requires_grad, strides, fake.device, info.grad_in_some_runs)
