"""Operators whose results have another size in each row, where what they are used for needs no such size.

    y[y > 1] = 0       ->  y.masked_fill_(y > 1, 0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from runtime.ir import Operator
from runtime.torch_internals import batches

NAMES = ("aten.index_put_.default", "aten.index_put.default")


def run(op: Operator, args: Sequence[Any]) -> Any:
    """The result; NotImplemented where the operator does something else."""
    tensor, indices, value, *rest = args
    masks = [index for index in indices if index is not None]
    if len(masks) != 1 or masks[0].dtype is not torch.bool or any(rest) or not batches.levels_of(masks[0]):
        return NotImplemented
    after = tensor.dim() - (len(indices) - 1) - masks[0].dim()
    if value.numel() != 1 or after < 0 or value.dtype != tensor.dtype:
        return NotImplemented
    mask = masks[0].reshape(*masks[0].shape, *(1,) * after)
    if tensor.shape[len(indices) - 1 : tensor.dim() - after] != masks[0].shape:
        return NotImplemented
    value = value.reshape(())
    if not op.name.startswith("aten.index_put_."):
        return torch.where(mask, value, tensor)
    return tensor.copy_(torch.where(mask, value, tensor))


__all__ = ["NAMES", "run"]
