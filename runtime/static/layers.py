"""What models of static-graph mode are made of beside ``torch.nn``: ``fc``, ``accuracy``, ``cross_entropy``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from runtime.errors import ProgramError
from runtime.static.guard import create_parameter


def fc(
    x: torch.Tensor, size: int, num_flatten_dims: int = 1,
    act: str | Callable[[torch.Tensor], torch.Tensor] | None = None, bias: bool = True, name: str | None = None,
) -> torch.Tensor:  # fmt: skip
    """A fully connected layer with parameters of its own: ``act(x @ w + b)``.

    Args:
        x: Of shape (..., in); dimensions from ``num_flatten_dims`` on are put together.
        size: The last size of the result.
        num_flatten_dims: How many leading dimensions of ``x`` the result keeps.
        act: A function of torch's by name ("relu", "softmax" over the last dimension), or any function.
        bias: Whether there is one.
        name: The parameters are called ``name.w`` and ``name.b``.

    Raises:
        ProgramError: The size of a dimension that is put together is not fixed, or ``act`` is unknown.
    """
    inner = list(x.shape[num_flatten_dims:])
    if any(type(one) is not int for one in inner):
        raise ProgramError("fc needs to know the sizes of the dimensions that it puts together")
    width = math.prod(inner)
    weight = create_parameter([width, size], x.dtype, f"{name}.w" if name else None)
    y = torch.matmul(x.flatten(num_flatten_dims) if len(inner) > 1 else x, weight)
    if bias:
        y = y + create_parameter([size], x.dtype, f"{name}.b" if name else None, is_bias=True)
    return y if act is None else _activation(act)(y)


def _activation(act: str | Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], Any]:
    if callable(act):
        return act
    if act == "softmax":
        return lambda y: torch.softmax(y, -1)
    found = getattr(torch, act, None) or getattr(torch.nn.functional, act, None)
    if not callable(found):
        raise ProgramError(f"there is no activation {act!r}", hint='Name a function of torch: "relu", "tanh".')
    return found


def cross_entropy(input: torch.Tensor, label: torch.Tensor, soft_label: bool = False) -> torch.Tensor:
    """The cross entropy of probabilities, for each row: ``-log(input[label])``, of shape (..., 1).

    Args:
        input: Probabilities, of shape (..., classes): what softmax gives. For logits there is
            ``torch.nn.functional.cross_entropy``.
        label: The classes, int64, of shape (...) or (..., 1); with ``soft_label`` probabilities of ``input``'s shape.
        soft_label: Whether labels are probabilities.
    """
    if soft_label:
        return -(label * torch.log(input)).sum(-1, keepdim=True)
    index = label if label.dim() == input.dim() else label.unsqueeze(-1)
    return -torch.log(torch.gather(input, -1, index))


def accuracy(input: torch.Tensor, label: torch.Tensor, k: int = 1) -> torch.Tensor:
    """The share of rows whose label is among the ``k`` largest of ``input``: a float32 tensor without dimensions.

    ``label``: int64, of shape (rows,) or (rows, 1).
    """
    index = label if label.dim() == input.dim() else label.unsqueeze(-1)
    best = torch.topk(input, k, -1).indices
    return (best == index).any(-1).to(torch.float32).mean()


__all__ = ["accuracy", "cross_entropy", "fc"]
