"""Example arguments, made of InputSpecs: tensors of zeros; of a packed sequence parts that fit together.

    InputSpec.packed([3])   ->   PackedSequence of 5 sequences, one of length 7 and four of length 1
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from runtime.ir.input_spec import InputSpec
from runtime.kinds import is_a


def tensor_of(spec: InputSpec, sizes: Sequence[int], device: torch.device | None) -> torch.Tensor:
    """Zeros, with ``sizes`` for those that are left open."""
    free = itertools.cycle(sizes)
    shape = [next(free) if size is None else size for size in spec.shape]
    return torch.zeros(shape, dtype=spec.dtype, device=device)


def is_packed(spec: Any) -> bool:
    """Whether it is a packed sequence of InputSpecs."""
    return is_a(spec, PackedSequence) and is_a(spec.data, InputSpec)


def packed_of(spec: Any, sizes: Sequence[int], device: torch.device | None) -> PackedSequence:
    """A packed sequence of zeros: as many rows as the lengths of its sequences say.

    The first sequence is as long as there are steps, the others as short as the number of rows lets them be.
    """
    free = itertools.cycle(sizes)
    counts = [one.shape[0] for one in (spec.sorted_indices, spec.batch_sizes) if one is not None]
    steps = counts.pop()
    sequences = counts[0] if counts else None
    rows = spec.data.shape[0]
    sequences = next(free) if sequences is None else sequences
    steps = next(free) if steps is None else steps
    rows = sequences + steps - 1 if rows is None else rows
    if spec.sorted_indices is None and spec.data.shape[0] is not None:
        sequences = max(rows - steps + 1, 1)
    in_step = [1] * steps
    left = rows - steps
    for step in range(steps):
        more = min(left, sequences - 1)
        in_step[step] += more
        left -= more
    data = tensor_of(InputSpec([rows, *spec.data.shape[1:]], spec.data.dtype), sizes, device)
    order = [None if one is None else torch.arange(sequences, device=device)
             for one in (spec.sorted_indices, spec.unsorted_indices)]  # fmt: skip
    return PackedSequence(data, torch.tensor(in_step, dtype=torch.int64), *order)


__all__ = ["is_packed", "packed_of", "tensor_of"]
