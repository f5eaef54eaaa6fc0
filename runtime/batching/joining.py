"""Values where rows go different ways: what each way begins with, and what comes out where they meet again.

*Filled in*: rows that do not go a way have the values of one that does. So no row meets an exception, a division by
zero or an endless loop that it would not have met by itself; and no gradient comes back through such a row, as what it
was filled in with has no history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from runtime.batching.rows import Mask, Rows
from runtime.torch_internals import batches

Refuse = Callable[[str, str], NoReturn]
"""``refuse(what, hint)`` raises the located error for a value on which rows do not agree."""


class Missing:
    """The value of a Variable on a path where it has none."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


def filled_in(mask: Mask, value: Any) -> Any:
    """The value with that of the mask's first row in all rows that are not the mask's."""
    if isinstance(value, torch.Tensor):
        if not batches.levels_of(value):
            return value
        return mask.fill(value)
    if isinstance(value, Rows):
        return mask.domain.value(mask.choose(value, value.values[mask.first]))
    return [filled_in(mask, item) for item in value] if isinstance(value, list) else value


def joined(mask: Mask, a: Any, b: Any, refuse: Refuse) -> Any:
    """``a`` in the rows of the mask, ``b`` in the others. Where one is no value, nobody reads it.

    Raises:
        TraceError: One value cannot be both (by ``refuse``).
    """
    if a is b or b is MISSING:
        return a
    if a is MISSING:
        return b
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _tensors(mask, a, b, refuse)
    if a is None and isinstance(b, list):  # the gradients of a list's items
        a = [None] * len(b)
    if b is None and isinstance(a, list):
        b = [None] * len(a)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            refuse(f"a list has {len(a)} items in one row and {len(b)} in another",
                   "Write into a tensor with a row for each step, made before the loop.")
        return [joined(mask, one, other, refuse) for one, other in zip(a, b)]
    if _is_gradient(a, b):
        return joined(mask, torch.zeros_like(b) if a is None else a, torch.zeros_like(a) if b is None else b, refuse)
    kinds = {type(row) for row in (*mask.each(a), *mask.each(b))}
    if len(kinds) != 1 or not kinds <= {bool, int, float, complex, str}:
        names = sorted(_named(value) for value in (a, b))
        refuse(f"this is {names[0]} in one row and {names[1]} in another", "Give it one type on all paths, as with "
               "float(...) or torch.tensor(...).")
    return mask.domain.value(mask.choose(a, b))


def _is_gradient(a: Any, b: Any) -> bool:
    """Whether one is a gradient and the other says that there is none; no other value of a Program is None or so."""
    return (a is None and isinstance(b, torch.Tensor)) or (b is None and isinstance(a, torch.Tensor))


def _tensors(mask: Mask, a: torch.Tensor, b: torch.Tensor, refuse: Refuse) -> torch.Tensor:
    if a.shape != b.shape:
        refuse(f"a tensor has sizes {list(a.shape)} in one row and {list(b.shape)} in another",
               "Keep one size and say with a mask, or with zeros, what counts.")
    if a.dtype != b.dtype or a.device != b.device:
        refuse(f"a tensor is {a.dtype} on {a.device} in one row and {b.dtype} on {b.device} in another",
               "Convert it on both paths, as with .to(...).")
    return mask.where(a, b)


def _named(value: Any) -> str:
    value = value.values[0] if isinstance(value, Rows) else value
    return "a tensor" if isinstance(value, torch.Tensor) else f"of type {type(value).__name__}"


__all__ = ["MISSING", "Refuse", "filled_in", "joined"]
