"""Methods of tensors and of modules, written in Python: what a trace runs where only the run knows how many elements
or parts there are, or whether they raise.

>>> listed(torch.tensor([[1, 2], [3, 4]]))
[[1, 2], [3, 4]]
>>> unbound(torch.tensor([[1, 2], [3, 4]]), 1)
(tensor([1, 3]), tensor([2, 4]))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch


def listed(tensor: torch.Tensor) -> list[Any]:
    """``tensor.tolist()`` of a tensor with dimensions."""
    if tensor.dim() == 1:
        return [element.item() for element in tensor]
    return [listed(row) for row in tensor]


def each(items: Any) -> Iterator[Any]:
    """The items one by one."""
    yield from items


def equal_fields(fields: tuple[Any, ...], others: tuple[Any, ...]) -> Any:
    """``a.x == b.x and a.y == b.y``, as a dataclass compares its fields from Python 3.13 on."""
    for one, other in zip(fields[:-1], others[:-1]):
        result = one == other
        if not result:
            return result
    return fields[-1] == others[-1] if fields else True


def selected(within: Callable[..., Any], tensor: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    """``tensor.index_select(dim, index)``, which looks at the numbers first: a handler catches what it raises.

    ``within``: the same for numbers that are known to lie in the tensor.
    """
    if index.numel() > 0 and ((index < 0) | (index >= tensor.shape[dim])).any():
        raise IndexError("index out of range in self")
    return within(tensor, dim, index)


def squeezed(tensor: torch.Tensor, ones: list[int], others: list[int]) -> torch.Tensor:
    """``tensor.squeeze(ones + others)``: of ``others`` only those that have one element go."""
    for dim in sorted([*ones, *others], reverse=True):
        if dim in ones:
            tensor = tensor.select(dim, 0)
        elif tensor.shape[dim] == 1:
            tensor = tensor.select(dim, 0)
    return tensor


def unbound(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, ...]:
    """``x.unbind(dim)``: rows that nobody may write."""
    length = x.size(dim)
    rows = []
    for index in range(length):
        rows.append(x.split_with_sizes([index, 1, length - index - 1], dim)[1].squeeze(dim))
    return tuple(rows)


__all__ = ["each", "equal_fields", "listed", "selected", "squeezed", "unbound"]
