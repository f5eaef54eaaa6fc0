"""What torch.vmap makes of tensors: a *batched* tensor looks like one row and holds all rows.

Each ``vmap`` around the running code is a *level*. A batched tensor is a wrapper: it has a level, and the dimension of
what it wraps in which the rows lie. Inside may be another, of a lower level, or a wrapper of ``torch.func.grad``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch._C import _functorch
from torch._functorch import pyfunctorch
from torch.utils import _pytree

from runtime.kinds import is_a

TRANSFORMS = str(Path(pyfunctorch.__file__).parent) + os.sep
"""The folder of torch's transforms: what they give is no code of the user's."""

Levels = tuple[int, ...]
"""Levels of ``vmap``, the outermost first."""


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """A tree, as the transforms take arguments and results apart, with other leaves."""
    return _pytree.tree_map(change, tree)


def without_transforms() -> AbstractContextManager[Any]:
    """Run torch code as if no transform of torch.func was around it."""
    found: AbstractContextManager[Any] = pyfunctorch.temporarily_clear_interpreter_stack()
    return found


def transforms() -> bool:
    """Whether a transform of torch.func (vmap, grad, jvp) is around the running code."""
    return _functorch.peek_interpreter_stack() is not None


def innermost(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor behind all wrappers of transforms."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether a transform has wrapped a tensor, one that is over included."""
    found: bool = _functorch.is_functorch_wrapped_tensor(tensor)
    return found


def levels_of(value: Any) -> set[int]:
    """The levels at which a tensor is batched; none for anything else."""
    found: set[int] = set()
    if not is_a(value, torch.Tensor):
        return found
    while _functorch.is_functorch_wrapped_tensor(value):
        if _functorch.is_batchedtensor(value):
            found.add(_functorch.maybe_get_level(value))
        value = _functorch.get_unwrapped(value)
    return found


def any_batched(values: Iterable[Any]) -> bool:
    """Whether one of the values is a batched tensor."""
    return any(levels_of(value) for value in values)


def needs_gradient(tensor: torch.Tensor) -> bool:
    """Whether a gradient is asked for through a tensor: by autograd or by a transform, at whatever level."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_gradtrackingtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return tensor.requires_grad


def is_transformed(value: Any) -> bool:
    """Whether a transform for gradients has wrapped a tensor."""
    while is_a(value, torch.Tensor) and _functorch.is_functorch_wrapped_tensor(value):
        if not _functorch.is_batchedtensor(value):
            return True
        value = _functorch.get_unwrapped(value)
    return False


def sizes_of_levels(levels: Iterable[int]) -> tuple[int, ...]:
    """How many rows there are at each level."""
    sizes = {
        interpreter.level(): interpreter.batch_size()
        for interpreter in pyfunctorch.retrieve_all_functorch_interpreters()
        if is_a(interpreter, pyfunctorch.VmapInterpreter)
    }
    return tuple(sizes[level] for level in levels)


def drawing_levels() -> set[int]:
    """The levels at which each row draws random numbers of its own."""
    return {
        interpreter.level() for interpreter in pyfunctorch.retrieve_all_functorch_interpreters()
        if is_a(interpreter, pyfunctorch.VmapInterpreter) and interpreter.randomness() == "different"
    }  # fmt: skip


def rows_of(tensor: torch.Tensor) -> tuple[torch.Tensor, Levels]:
    """The tensor behind the wrappers; its first dimensions are those of the levels, which are named.

    To be called in ``without_transforms``.
    """
    wrappers: list[tuple[int, int]] = []
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            wrappers.append((_functorch.maybe_get_level(tensor), _functorch.maybe_get_bdim(tensor)))
        tensor = _functorch.get_unwrapped(tensor)
    dims = list(range(tensor.dim()))
    found = [(level, dims.pop(dim)) for level, dim in reversed(wrappers)]
    plain = tensor
    if found:
        plain = plain.permute([*(dim for _, dim in found), *dims])
    return plain, tuple(level for level, _ in found)


def batched(rows: torch.Tensor, levels: Sequence[int]) -> torch.Tensor:
    """The batched tensor whose rows at these levels lie in the first dimensions of a plain one."""
    for level in levels:
        rows = _functorch._add_batch_dim(rows, 0, level)
    return rows


def like_a_row(tensor: torch.Tensor) -> torch.Tensor:
    """A plain tensor that looks as a batched one does: its first row. Others are given back as they are."""
    if not _functorch.is_functorch_wrapped_tensor(tensor):
        return tensor
    needs = needs_gradient(tensor)
    with without_transforms():
        rows, levels = rows_of(tensor)
        empty = any(size == 0 for size in rows.shape[: len(levels)])
        row = rows.new_ones(rows.shape[len(levels) :]) if empty else rows[(0,) * len(levels)].detach()
        return row.requires_grad_(needs).view_as(row) if needs else row


__all__ = [
    "TRANSFORMS", "Levels", "any_batched", "batched", "drawing_levels", "innermost", "is_transformed", "is_wrapped",
    "levels_of", "like_a_row", "map_leaves", "needs_gradient", "rows_of", "sizes_of_levels", "transforms",
    "without_transforms",
]  # fmt: skip
