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


def embedded(
    within: Callable[..., torch.Tensor], weight: torch.Tensor, indices: torch.Tensor, *options: Any
) -> torch.Tensor:
    """``torch.embedding(weight, indices, *options)`` in the same way."""
    if indices.numel() > 0 and ((indices < 0) | (indices >= weight.shape[0])).any():
        raise IndexError("index out of range in self")
    return within(weight, indices, *options)


def cholesky(name: str, tensor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """``torch.linalg.cholesky``, which looks at what the kernel tells: a handler catches what it raises."""
    factor, info = torch.linalg.cholesky_ex(tensor, upper=upper)
    if (info != 0).any():
        raise torch.linalg.LinAlgError(_complaint(
            name, info, "The factorization could not be completed because the input is not positive-definite (the "
            "leading minor of order ", " is not positive-definite)."))  # fmt: skip
    return factor


def inverse(tensor: torch.Tensor) -> torch.Tensor:
    """``torch.linalg.inv`` in the same way."""
    found, info = torch.linalg.inv_ex(tensor)
    if (info != 0).any():
        raise torch.linalg.LinAlgError(_complaint(
            "linalg.inv", info, "The diagonal element ",
            " is zero, the inversion could not be completed because the input matrix is singular."))  # fmt: skip
    return found


def solved(tensor: torch.Tensor, other: torch.Tensor, left: bool = True) -> torch.Tensor:
    """``torch.linalg.solve`` in the same way."""
    found, info = torch.linalg.solve_ex(tensor, other, left=left)
    if (info != 0).any():
        raise torch.linalg.LinAlgError(_complaint(
            "torch.linalg.solve", info, "The solver failed because the input matrix is singular."))
    return found


def _complaint(name: str, info: torch.Tensor, text: str, after: str = "") -> str:
    """What PyTorch says of the first matrix that ``info`` is not 0 for."""
    if info.dim() == 0:
        return f"{name}: {text}{int(info)}{after}" if after else f"{name}: {text}"
    numbers = info.flatten()
    first = int((numbers != 0).int().argmax())
    start = f"{name}: (Batch element {first}): {text}"
    return f"{start}{int(numbers[first])}{after}" if after else start


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


__all__ = [
    "cholesky", "each", "embedded", "equal_fields", "inverse", "listed", "selected", "solved", "squeezed", "unbound",
]  # fmt: skip
