"""The caller's tensors after a run: what a Program made of them is put into them."""

from __future__ import annotations

import torch

from runtime import torch_internals
from runtime.torch_internals import batches


def write_back(target: torch.Tensor, value: torch.Tensor, announced: bool = True) -> None:
    """Put a new value into the caller's tensor, as the function's in-place operation would have.

    ``announced``: whether autograd counts the write; it does not know of the statistics of a norm, so that a backward
    that has kept them reads the new ones.

    A value without history comes from a write outside the graph: the caller's tensor keeps the history it has. So does
    a leaf: what autograd lets an operator write to one, it knows nothing of.
    """
    if value is target:
        return
    if value.shape != target.shape:  # an ``out=`` that was resized
        with torch_internals.below_autograd():  # which lets resize_() change no leaf that requires grad
            target.resize_(value.shape)
    elif not value.requires_grad and _is_one_memory(value, target):
        return  # not written in this run, or in the tensor itself: for autograd that is no write
    seen = batches.needs_gradient(value) and not (target.is_leaf and target.requires_grad)
    if seen:
        target.copy_(value)
    else:
        hidden = not announced and not batches.is_wrapped(target)  # transforms let nobody ask for ``.data``
        torch_internals.copy_unseen(target.data if hidden else target, value)


def _is_one_memory(value: torch.Tensor, target: torch.Tensor) -> bool:
    if (batches.is_wrapped(value) or batches.is_wrapped(target)) and batches.any_batched((value, target)):
        return False
    strided = value.layout is torch.strided and target.layout is torch.strided
    return strided and not value.is_meta and value.device == target.device and value.is_set_to(target)


__all__ = ["write_back"]
