"""Tensors that a ``torch.autograd.Function`` only holds (``ctx.x = x``): backward reads what they hold by then.

An ``update`` writes a copy, so a cell stands for the tensor, and each write puts the copy in it. Cells are found by the
memory that they are in, so a write costs nothing for those of other memory; all threads share one registry.
"""

from __future__ import annotations

import threading
import weakref

import torch

from runtime import torch_internals


class Held:
    """A tensor from forward until backward; ``hold`` makes one, or gives the one that there is."""

    def __init__(self, tensor: torch.Tensor, memory: int) -> None:
        self._tensor = tensor
        self._elsewhere = False
        _register(self, tensor, memory)

    def written(self, base: torch.Tensor, written: torch.Tensor, memory: int) -> None:
        """The memory was written that the tensor is in: that of ``base`` is in ``written``."""
        if self._tensor is base:
            _forget(memory, id(base))
            self._tensor = written
            _register(self, written, _memory(written))
        elif base.numel() and self._tensor.numel():
            _forget(memory, id(self._tensor))
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


_cells: dict[int, dict[int, weakref.ref[Held]]] = {}
"""For each memory its cells, by the tensor. A cell keeps both alive, so the numbers are of no other tensor."""

_lock = threading.RLock()
"""A cell may be freed while its own thread registers another one."""


def hold(tensor: torch.Tensor) -> Held:
    """The cell of a tensor: one, however many functions hold it."""
    memory = _memory(tensor)
    with _lock:
        reference = _cells.get(memory, {}).get(id(tensor))
        return (reference() if reference is not None else None) or Held(tensor, memory)


def note_write(base: torch.Tensor, written: torch.Tensor) -> None:
    """What is held of ``base`` is in ``written`` from now on."""
    if not _cells:
        return
    memory = _memory(base)
    with _lock:
        for cell in [reference() for reference in list(_cells.get(memory, {}).values())]:
            if cell is not None:
                cell.written(base, written, memory)


def _memory(tensor: torch.Tensor) -> int:
    """A number for the memory of a tensor; one without a storage of its own, as a sparse one, is the only one there."""
    try:
        return torch_internals.storage_identity(tensor)
    except Exception:  # PyTorch has several errors for tensors that have no storage
        return -id(tensor)


def _register(cell: Held, tensor: torch.Tensor, memory: int) -> None:
    number = id(tensor)
    reference = weakref.ref(cell, lambda dead: _forget(memory, number, dead))
    with _lock:
        found = _cells.get(memory, {})
        found[number] = reference
        _cells[memory] = found  # again: freeing the last of the others may have taken it out meanwhile


def _forget(memory: int, number: int, dead: object = None) -> None:
    """Take a cell out; ``dead``: only if it is still this one that is there."""
    with _lock:
        found = _cells.get(memory, {})
        if number in found and (dead is None or found[number] is dead):
            del found[number]
            if not found:
                del _cells[memory]


__all__ = ["Held", "hold", "note_write"]
