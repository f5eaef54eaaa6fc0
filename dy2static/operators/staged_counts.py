"""Counts and offsets that only the run knows, where the size of a dimension bounds what they can mean.

    x.chunk(int(n))      ->   switch(n - 1, x.chunk(1), x.chunk(2), ..., x.chunk(size), what it raises for others)

``chunk``, ``split``, ``unfold`` and the like have a result of another shape, or another number of results, for each
value. Where the dimension has a fixed size there are only so many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_MOST = 64
"""The most values that a switch has a path for."""


@dataclass(frozen=True)
class Bounds:
    """The values that mean something different each; all above ``high`` mean what ``high + 1`` does, if ``same``."""

    low: int
    high: int
    same: bool


_Rule = Callable[[int], Bounds]
"""From the size of the dimension."""

_COUNTS: dict[tuple[str, str], _Rule] = {
    ("chunk", "chunks"): lambda size: Bounds(1, size, True),
    ("unsafe_chunk", "chunks"): lambda size: Bounds(1, size, True),
    ("split", "split_size"): lambda size: Bounds(0, size, True),
    ("unsafe_split", "split_size"): lambda size: Bounds(0, size, True),
    ("unfold", "size"): lambda size: Bounds(0, size, False),
    ("unfold", "step"): lambda size: Bounds(1, size, True),
    ("diff", "n"): lambda size: Bounds(0, size, True),
}
"""By function and argument. A step above the size leaves one window, a difference of higher order nothing."""

_DIMENSIONS = {"unfold": (0, ("dimension",)), "diff": (1, ("dim",))}
"""By function: where the dimension stands after the tensor and the count, and its names; else second, or ``dim``."""


def bounds(f: Any, names: frozenset[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bounds | None:
    """The values of an argument that differ in meaning; None if nothing bounds them.

    ``names``: what the argument is called in the operators' schemas.
    """
    name = getattr(f, "__name__", "")
    rule = next((_COUNTS[name, one] for one in sorted(names) if (name, one) in _COUNTS), None)
    if rule is None:
        return None
    owner = getattr(f, "__self__", None)
    if not isinstance(owner, torch.Tensor):
        owner, args = (args[0], args[1:]) if args else (kwargs.get("input", kwargs.get("self")), ())
    if not isinstance(owner, torch.Tensor):
        return None
    position, dims = _DIMENSIONS.get(name, (1, ("dim",)))
    default = -1 if name == "diff" else 0
    dim = next((kwargs[one] for one in dims if one in kwargs), default)
    if len(args) > position:
        dim = args[position]
    if type(dim) is not int or not -owner.dim() <= dim < owner.dim():
        return None
    size: Any = owner.shape[dim]
    if type(size) is not int:
        return None
    found = rule(size)
    return found if found.high - found.low < _MOST else None


__all__ = ["Bounds", "bounds"]
