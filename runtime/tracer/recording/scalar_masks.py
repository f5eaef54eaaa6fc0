"""Masks without dimensions: what they select is a dimension of one element or none.

    y[m]          ->   y.unsqueeze(0)[m.reshape(1)]
    y[0, m] = v   ->   y[0, None][m.reshape(1)] = v

PyTorch's indexing reads the number of such a mask, which only a run knows; it does the same as what stands on the right
(the function ``applySlicing`` of its C++ sources).
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.kinds import is_a

MASKS = (torch.bool, torch.uint8)
"""Dtypes of indices that select where they are true."""


def without(index: Any) -> tuple[Any, Any] | None:
    """What to index with instead, first and then; None where no mask of an index is without dimensions.

    >>> without((0, torch.tensor(True)))
    ((0, None), (tensor([True]),))
    >>> without((0, torch.tensor([True])))
    """
    parts = index if is_a(index, tuple) else (index,)
    if not any(map(is_one, parts)):
        return None
    first: list[Any] = []
    then: list[Any] = []
    for part in parts:
        if is_one(part):
            first.append(None)
            then.append(part.to(torch.bool).reshape(1))
        elif is_a(part, bool):
            first.append(None)
            then.append([part])
        elif part is None or is_a(part, slice):
            first.append(part)
            then.append(slice(None))
        elif part is Ellipsis:
            first.append(part)
            then.append(part)
        elif _is_number(part):
            first.append(part)
        else:
            first.append(slice(None))
            then.append(part)
    return tuple(first), tuple(then)


def is_one(part: Any) -> bool:
    """Whether a part of an index is such a mask."""
    return is_a(part, torch.Tensor) and part.dim() == 0 and part.dtype in MASKS


def _is_number(part: Any) -> bool:
    """Whether an index takes a dimension away."""
    if is_a(part, torch.Tensor):
        return part.dim() == 0
    return not is_a(part, (bool, list, tuple)) and hasattr(part, "__index__")
