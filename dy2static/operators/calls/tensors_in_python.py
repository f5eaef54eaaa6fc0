"""Methods of tensors, written in Python: what a trace runs where only the run knows how many elements there are.

>>> listed(torch.tensor([[1, 2], [3, 4]]))
[[1, 2], [3, 4]]
"""

from __future__ import annotations

from typing import Any

import torch


def listed(tensor: torch.Tensor) -> list[Any]:
    """``tensor.tolist()`` of a tensor with dimensions."""
    if tensor.dim() == 1:
        return [element.item() for element in tensor]
    return [listed(row) for row in tensor]


__all__ = ["listed"]
