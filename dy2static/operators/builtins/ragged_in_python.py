"""Parts of different lengths, written in Python: what a trace runs where only the run knows how many there are.

>>> import torch
>>> parts = split(torch.arange(5), [2, 0, 3], 0)
>>> [part.tolist() for part in parts], pad_sequence(parts, True, 9).tolist()
([[0, 1], [], [2, 3, 4]], [[0, 1, 9], [9, 9, 9], [2, 3, 4]])
>>> [part.tolist() for part in split_every(torch.arange(5), 2, 0)]
[[0, 1], [2, 3], [4]]
"""

from __future__ import annotations

from typing import Any

import torch


def split(x: torch.Tensor, sizes: Any, dim: int) -> tuple[torch.Tensor, ...]:
    """``x.split(sizes, dim)``. A part is one of three, as PyTorch gives parts of a split, which nobody may write."""
    length = x.size(dim)
    total = sum(sizes)
    if total != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {dim}"
            f"), but got split_sizes=[{', '.join(str(size) for size in sizes)}]")
    parts = []
    start = 0
    for size in sizes:
        parts.append(x.split_with_sizes([start, size, length - start - size], dim)[1])
        start = start + size
    return tuple(parts)


def split_every(x: torch.Tensor, size: int, dim: int) -> tuple[torch.Tensor, ...]:
    """``x.split(size, dim)``: the last part is what is left, and a tensor without elements has one part."""
    length = x.size(dim)
    first = size if length > size else length
    parts = [x.split_with_sizes([0, first, length - first], dim)[1]]
    start = first
    while start < length:
        rest = length - start
        part = size if rest > size else rest
        parts.append(x.split_with_sizes([start, part, rest - part], dim)[1])
        start = start + part
    return tuple(parts)


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0) -> torch.Tensor:
    """``torch.nn.utils.rnn.pad_sequence``, with the padding behind."""
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    longest = 0
    for place, one in enumerate(sequences):
        if not isinstance(one, torch.Tensor):
            raise TypeError(f"expected Tensor as element {place} in argument 0, but got {type(one).__name__}")
        if one.size(0) > longest:
            longest = one.size(0)
    rows = []
    for one in sequences:
        around = [0, 0] * (one.dim() - 1)
        rows.append(torch.nn.functional.pad(one, [*around, 0, longest - one.size(0)], value=padding_value))
    padded = torch.stack(rows)
    return padded if batch_first else padded.transpose(0, 1).contiguous()


__all__ = ["pad_sequence", "split", "split_every"]
