"""Sparse tensors: what of one is no size, dtype or device, and yet decides what operators do."""

from __future__ import annotations

from typing import Any

import torch


def is_sparse(tensor: torch.Tensor) -> bool:
    """Whether a tensor is sparse, in any of torch's layouts."""
    return tensor.layout is not torch.strided and str(tensor.layout).startswith("torch.sparse")


def sparse_key(tensor: torch.Tensor) -> Any:
    """Of a sparse tensor what a Program fixes besides its sizes; None of a dense one.

    >>> sparse_key(torch.eye(2)), sparse_key(torch.eye(2).to_sparse())
    (None, (2, 0, True))
    """
    layout = tensor.layout
    if layout is torch.strided:
        return None
    if layout is torch.sparse_coo:
        return tensor.sparse_dim(), tensor.dense_dim(), tensor.is_coalesced()
    if layout in (torch.sparse_csr, torch.sparse_bsr):
        return _of_rows(tensor, tensor.crow_indices())
    if layout in (torch.sparse_csc, torch.sparse_bsc):
        return _of_rows(tensor, tensor.ccol_indices())
    return None


def count(tensor: torch.Tensor) -> Any:
    """How many elements a sparse tensor holds, as a size of its indices."""
    if tensor.layout is torch.sparse_coo:
        return torch.ops.aten._indices.default(tensor).shape[1]
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    indices = torch.ops.aten.col_indices.default if rows else torch.ops.aten.row_indices.default
    return indices(tensor).shape[-1]


def _of_rows(tensor: torch.Tensor, compressed: torch.Tensor) -> Any:
    """The dtype of the indices, the batch's dimensions, and the sizes of a block and of what is dense."""
    return compressed.dtype, compressed.dim() - 1, tuple(tensor.values().shape[compressed.dim() :])


__all__ = ["count", "is_sparse", "sparse_key"]
