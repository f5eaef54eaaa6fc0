"""Tensors that a ``torch.autograd.Function`` only holds (``ctx.x = x``): backward reads what they hold by then.

An ``update`` writes a copy, so a cell stands for the tensor, and each write puts the copy in it.
"""

from __future__ import annotations

import weakref

import torch


class Held:
    """A tensor from forward until backward."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._elsewhere = False
        _cells.add(self)

    def written(self, base: torch.Tensor, written: torch.Tensor) -> None:
        """``base`` was written: that is in ``written``."""
        if self._tensor is base:
            self._tensor = written
        elif self._tensor.untyped_storage().data_ptr() == base.untyped_storage().data_ptr():
            self._elsewhere = True

    @property
    def tensor(self) -> torch.Tensor:
        """The tensor as it is now.

        Raises:
            RuntimeError: It is a part of what was written since: its content of now is elsewhere.
        """
        if self._elsewhere:
            raise RuntimeError("a tensor that an autograd.Function holds as an attribute of ctx was written in place "
                               "since forward. Use ctx.save_for_backward, or keep a .clone() of it.")  # fmt: skip
        return self._tensor


_cells: weakref.WeakSet[Held] = weakref.WeakSet()


def note_write(base: torch.Tensor, written: torch.Tensor) -> None:
    """What is held of ``base`` is in ``written`` from now on."""
    for cell in list(_cells) if _cells else ():
        cell.written(base, written)


__all__ = ["Held", "note_write"]
