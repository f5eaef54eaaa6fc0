"""Tensors that a path makes the start of a graph, or lets be none any more, although they are older than the path.

    d = torch.zeros(3)
    if c:
        d.requires_grad_()       on the other path, and after the branch on some, d needs no gradient

Where the path ends each stands again for what it stood for before. After the construct nobody knows which it is: who
reads it, or asks whether it needs a gradient, gets an error that says where it was changed. A loop that carries such a
tensor as a variable has a tensor of its own in each iteration, which it may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from runtime.ir import Location
from runtime.tracer.memory.storage_table import TensorInfo

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


@dataclass(frozen=True)
class LeafChange:
    """A tensor, what it stood for before, and where it was changed."""

    tensor: torch.Tensor
    before: TensorInfo
    location: Location | None

    def error(self, session: Session) -> Exception:
        """The error for whoever reads it, where it is not known any more."""
        return session.error(
            "requires_grad_() on a path that only some inputs take, or in a loop, of a tensor that was made before it",
            hint="Use d = d.detach().requires_grad_() there, and the new tensor from then on.", code="D2S213",
            location=self.location)


LeafChanges = dict[int, LeafChange]
"""By identity of the tensor."""


def change(session: Session, tensor: torch.Tensor, info: TensorInfo) -> None:
    """Let a tensor stand for something else from here on."""
    before = session.info(tensor)
    if before.number < session.graph.path_start:
        session.graph.leaf_changes.setdefault(id(tensor), LeafChange(tensor, before, session.location()))
    session.register(tensor, info)


def undo(session: Session, changes: Iterable[LeafChange]) -> None:
    """Let tensors stand for what they stood for before."""
    for one in changes:
        session.put_back(one.tensor, one.before)


def forget(session: Session, changes: Iterable[LeafChange]) -> None:
    """After a construct on whose paths they were changed, or may have been."""
    for one in changes:
        info = session.info(one.tensor)
        storage = session.storages.new(info.storage.value, label=info.storage.label)
        storage.lost = one
        change(session, one.tensor, TensorInfo(storage, (), info.requires_grad, info.layout_known))


__all__ = ["LeafChange", "LeafChanges", "change", "forget", "undo"]
