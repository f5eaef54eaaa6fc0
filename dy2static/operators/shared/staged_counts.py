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

from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked

_MOST = 64
"""The most values that a switch has a path for."""


@dataclass(frozen=True)
class Bounds:
    """The values that mean something different each; all above ``high`` mean what ``high + 1`` does, if ``same``, all
    below ``low`` what ``low - 1`` does, if ``same_below``, and all others what they do modulo ``period``."""

    low: int
    high: int
    same: bool
    same_below: bool = False
    period: int | None = None


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
    ("vsplit", "sections"): lambda size: Bounds(-size, size, False),
    ("hsplit", "sections"): lambda size: Bounds(-size, size, False),
    ("dsplit", "sections"): lambda size: Bounds(-size, size, False),
}
"""By function and argument. A step above the size leaves one window, a difference of higher order nothing."""

_SPLIT_AT = {"vsplit": 0, "hsplit": 1, "dsplit": 2}
_OFFSETS = {("diagonal", "offset"), ("linalg_diagonal", "offset"), ("diag", "diagonal")}
"""A diagonal beyond the corners is empty, whichever it is."""

_DIMENSIONS = {"unfold": (0, ("dimension",)), "diff": (1, ("dim",))}
"""By function: where the dimension stands after the tensor and the count, and its names; else second, or ``dim``."""


_REDUCTION = Bounds(0, 2, True, same_below=True)
"""``reduction`` as a number: none, the mean, the sum; what others mean each function says."""


def bounds(f: Any, names: frozenset[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bounds | None:
    """The values of an argument that differ in meaning; None if nothing bounds them.

    ``names``: what the argument is called in the operators' schemas.
    """
    name = unasked(f, "__name__", "")
    if name == "rot90" and "k" in names:
        return Bounds(0, 3, False, period=4)
    if "reduction" in names:
        return _REDUCTION
    offset = any((name, one) in _OFFSETS for one in names)
    rule = next((_COUNTS[name, one] for one in sorted(names) if (name, one) in _COUNTS), None)
    if rule is None and not offset:
        return None
    owner = unasked(f, "__self__")
    if not is_a(owner, torch.Tensor):
        by_name = next((kwargs[one] for one in ("input", "self", "A") if one in kwargs), None)
        owner, args = (args[0], args[1:]) if args else (by_name, ())
    if not is_a(owner, torch.Tensor):
        return None
    if rule is None:
        return _offsets(name, owner, args, kwargs)
    position, dims = _DIMENSIONS.get(name, (1, ("dim",)))
    default = -1 if name == "diff" else 0
    dim = next((kwargs[one] for one in dims if one in kwargs), default)
    if len(args) > position:
        dim = args[position]
    if name in _SPLIT_AT:
        dim = 0 if name == "hsplit" and owner.dim() == 1 else _SPLIT_AT[name]
    if type(dim) is not int or not -owner.dim() <= dim < owner.dim():
        return None
    size: Any = owner.shape[dim]
    if type(size) is not int:
        return None
    return _few(rule(size))


def _few(found: Bounds) -> Bounds | None:
    return found if found.high - found.low < _MOST else None


def _offsets(name: str, owner: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bounds | None:
    """Diagonals of a matrix in two dimensions: those between the corners, and an empty one beyond each."""
    if name == "diag":
        if owner.dim() != 2:
            return None  # a vector becomes a matrix, of another size for each
        dims = [0, 1]
    else:
        given = dict(zip(("offset", "dim1", "dim2"), args))
        defaults = (("dim1", -2), ("dim2", -1)) if name == "linalg_diagonal" else (("dim1", 0), ("dim2", 1))
        dims = [{**given, **kwargs}.get(dim, default) for dim, default in defaults]
    if any(type(dim) is not int or not -owner.dim() <= dim < owner.dim() for dim in dims):
        return None
    rows, columns = (owner.shape[dim] for dim in dims)
    if type(rows) is not int or type(columns) is not int:
        return None
    return _few(Bounds(1 - rows, columns - 1, True, same_below=True)) if rows and columns else None


__all__ = ["Bounds", "bounds"]
