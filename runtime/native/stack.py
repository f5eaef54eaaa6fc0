"""What a loop of a forward half keeps for its backward half: rows of one tensor, where a list has a tensor for each.

Only Programs compiled to C give and take it, and nobody else sees it: whatever is not C gets the list (``listed``).
Small stacks of one call lie in one piece of memory, and are made tensors only where somebody asks for ``rows``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch


class Stack:
    """Tensors of one dtype and size, in order. ``shape``: how many, and the sizes of one."""

    __slots__ = ("_memory", "_start", "address", "dtype", "shape")

    def __init__(
        self, memory: torch.Tensor, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None, start: int = 0
    ) -> None:
        """``memory``: the rows, or bytes in which they lie one after another, from ``start`` on."""
        self._memory = memory
        self._start = start
        self.shape = tuple(memory.shape if shape is None else shape)
        self.dtype = dtype or memory.dtype
        self.address = memory.data_ptr() + start

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def rows(self) -> torch.Tensor:
        """All of them, as one tensor."""
        if self._memory.dtype is self.dtype and self._memory.shape == self.shape:
            return self._memory
        size = math.prod(self.shape) * self.dtype.itemsize
        return self._memory[self._start : self._start + size].view(self.dtype).view(self.shape)


def listed(value: Any) -> Any:
    """A stack as the list that it stands for; anything else as it is.

    >>> listed(Stack(torch.zeros(2, 3))), listed(4)
    ([tensor([0., 0., 0.]), tensor([0., 0., 0.])], 4)
    """
    return list(value.rows.unbind(0)) if type(value) is Stack else value


__all__ = ["Stack", "listed"]
