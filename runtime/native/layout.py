"""How the arguments of a region lie in memory: a region is written once for each way that comes.

    x.t()          its dimensions from the outermost inwards are (1, 0), and nothing lies between its elements
    x[:, :4]       rows with something between them: C is told the strides at each call
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch


class Layout(NamedTuple):
    """order: the dimensions from the outermost in memory inwards. strided: whether something lies between elements, so
    that strides are words of each call; unit: then, whether elements of the innermost dimension lie side by side;
    still: the dimensions of stride 0."""

    order: tuple[int, ...]
    strided: bool = False
    unit: bool = False
    still: tuple[int, ...] = ()

    def steps(self, fresh: Callable[[], str]) -> tuple[int | str, ...]:
        """The strides: those that are always the same, and names for the others."""
        unit = self.order[-1] if self.unit else None
        return tuple(1 if dim == unit else 0 if dim in self.still else fresh() for dim in range(len(self.order)))


def layout_of(value: Any) -> Layout | None:
    """How a tensor lies in memory; None for one that lies row after row, or in a way that C has no form for."""
    if value.layout is not torch.strided or value.is_contiguous():
        return None
    sizes, strides = tuple(value.shape), value.stride()
    dense = tuple(sorted(range(value.dim()), key=lambda dim: -strides[dim]))
    if value.permute(dense).is_contiguous():
        return Layout(dense)
    order = order_of(sizes, strides)
    if order is None:
        return None
    return Layout(order, True, strides[order[-1]] == 1, tuple(dim for dim, step in enumerate(strides) if step == 0))


@functools.lru_cache(1024)
def order_of(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Dimensions from the outermost in memory inwards; None where that is not certain.

    An expanded dimension lies nowhere: it stays in its place, which must then be everybody's.

    >>> order_of((2, 3, 4), (12, 1, 3)), order_of((2, 3), (0, 1)), order_of((4, 4), (1, 1)), order_of((1, 3), (7, 2))
    ((0, 2, 1), (0, 1), None, (0, 1))
    """
    count = len(sizes)
    moving = [dim for dim in range(count) if sizes[dim] > 1 and strides[dim] != 0]
    steps = [strides[dim] for dim in moving]
    if len(set(steps)) < len(steps):
        return None
    if sorted(steps, reverse=True) == steps:
        return tuple(range(count))
    if len(moving) < count:
        return None
    return tuple(sorted(range(count), key=lambda dim: -strides[dim]))


__all__ = ["Layout", "layout_of", "order_of"]
