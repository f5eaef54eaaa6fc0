"""What a loop of a forward half keeps for its backward half: rows of one tensor, where a list has a tensor for each.

Only Programs compiled to C give and take it, and nobody else sees it: whatever is not C gets the list (``listed``).
"""

from __future__ import annotations

from typing import Any

import torch


class Stack:
    """Tensors of one dtype and size, in order."""

    __slots__ = ("rows",)

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)


def listed(value: Any) -> Any:
    """A stack as the list that it stands for; anything else as it is.

    >>> listed(Stack(torch.zeros(2, 3))), listed(4)
    ([tensor([0., 0., 0.]), tensor([0., 0., 0.])], 4)
    """
    return list(value.rows.unbind(0)) if type(value) is Stack else value
