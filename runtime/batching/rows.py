"""Python values that differ between rows, and which rows something holds for.

>>> domain = Domain((), (3,))
>>> domain.value([2, 2, 2]), domain.value([1, 2, 3])
(2, Rows(1, 2, 3))
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from runtime.ir.walk import map_leaves
from runtime.torch_internals import batches


class Rows:
    """A number, flag or text that is not the same in all rows: a Python value for each."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Rows({', '.join(map(repr, self.values))})"

    def __bool__(self) -> bool:
        raise AssertionError("a value of many rows was asked for its truth")


class Domain:
    """All rows of a call: the levels of ``vmap`` at which its tensors are batched, and how many rows each has.

    Rows are counted through, the innermost level fastest.
    """

    def __init__(self, levels: batches.Levels, sizes: tuple[int, ...]) -> None:
        self.levels = levels
        self.sizes = sizes
        self.count = math.prod(sizes)
        self.recording = torch.is_grad_enabled()
        """Whether the caller records gradients."""
        self.all = (1 << self.count) - 1
        """All rows, as bits."""
        self._histories = WeakIdKeyDictionary()
        """Of tensors that need a gradient in some rows only: in which, as bits. A row by itself has a history or none;
        where rows meet they are one tensor for autograd."""

    @staticmethod
    def of(values: Iterable[Any], random: bool = False) -> Domain:
        """The rows of a call whose arguments these are. ``random``: it draws numbers, which may differ between rows."""
        found = set[int]().union(*map(batches.levels_of, values))
        levels = tuple(sorted(found | batches.drawing_levels() if random else found))
        return Domain(levels, batches.sizes_of_levels(levels))

    def keeping_history(self) -> AbstractContextManager[Any]:
        """Around what only moves values: it keeps their gradients, also where the function records none."""
        return torch.enable_grad() if self.recording else contextlib.nullcontext()

    def history(self, tensor: torch.Tensor) -> int:
        """The rows in which a tensor needs a gradient, as bits."""
        found: int | None = self._histories.get(tensor) if self._histories else None
        return found if found is not None else self.all if batches.needs_gradient(tensor) else 0

    def with_history(self, tensor: torch.Tensor, rows: int) -> torch.Tensor:
        """A tensor that needs a gradient in these rows, if it needs one."""
        if rows == self.all or not batches.needs_gradient(tensor):
            return tensor
        if not rows:
            return tensor.detach()
        self._histories[tensor] = rows
        return tensor

    def histories(self, given: Any) -> int | None:
        """The rows in which what is computed of values needs a gradient; None: nothing is to be said of it.

        To be asked before they are written.
        """
        if not self._histories:
            return None
        tensors: list[torch.Tensor] = []
        map_leaves(given, lambda one: tensors.append(one) if isinstance(one, torch.Tensor) else None)
        if not any(one in self._histories for one in tensors):
            return None
        return functools.reduce(operator.or_, map(self.history, tensors))

    def following(self, made: Sequence[Any], rows: int | None) -> Sequence[Any]:
        """What was computed of values, each tensor with the history of those."""
        if rows is None:
            return made
        result: Sequence[Any] = map_leaves(
            list(made), lambda one: self.with_history(one, rows) if isinstance(one, torch.Tensor) else one)
        return result

    def value(self, values: list[Any]) -> Any:
        """The Python value itself where all rows have the same."""
        first = values[0]
        return first if all(alike(first, other) for other in values) else Rows(values)

    def numbers(self, tensor: torch.Tensor) -> list[Any]:
        """The number that a tensor of one element holds in each row."""
        with batches.without_transforms():
            plain, levels = batches.rows_of(tensor)
            sizes = [size if level in levels else 1 for level, size in zip(self.levels, self.sizes)]
            found: list[Any] = plain.reshape(sizes).expand(self.sizes).reshape(-1).tolist()
            return found

    def tensor(self, values: Sequence[Any], dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
        """The batched tensor without dimensions that holds these numbers."""
        with batches.without_transforms():
            plain = torch.tensor(list(values), dtype=dtype or _dtype(values), device=device).reshape(self.sizes)
        return batches.batched(plain, self.levels)

    def row(self, tensor: torch.Tensor, index: int) -> torch.Tensor:
        """What a tensor is in one row, as a plain tensor without history."""
        with batches.without_transforms():
            found: torch.Tensor = self.row_with_history(tensor, index).detach()
            return found

    def row_with_history(self, value: Any, index: int) -> Any:
        """What a value is in one row. To be called in ``without_transforms``, for tensors that no transform for
        gradients has wrapped, if the history is to be right."""
        if not isinstance(value, torch.Tensor):
            return value
        place = dict(zip(self.levels, self._places[index]))
        plain, levels = batches.rows_of(value)
        return plain[tuple(place[level] for level in levels)] if levels else plain

    @cached_property
    def _places(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*map(range, self.sizes)))


def alike(a: Any, b: Any) -> bool:
    """Whether two Python values are the same in all that can be seen: type, value, sign of zero.

    >>> alike(1, 1), alike(1, True), alike(0.0, -0.0), alike(math.nan, math.nan)
    (True, False, False, True)
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    return repr(a) == repr(b) if isinstance(a, (float, complex)) else bool(a == b)


def _dtype(values: Sequence[Any]) -> torch.dtype:
    """The dtype that holds Python numbers as they are."""
    dtypes = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    return dtypes[type(values[0])]


class Mask:
    """Rows that go one way; at least one does.

    ``first`` is one of them; where the others need a value, they have its.
    """

    def __init__(self, domain: Domain, rows: list[bool]) -> None:
        self.domain = domain
        self.rows = rows
        self.first = rows.index(True)
        self.bits = sum(1 << number for number, row in enumerate(rows) if row)
        self._tensors: dict[torch.device, torch.Tensor] = {}

    def tensor(self, device: torch.device) -> torch.Tensor:
        """The flag of each row."""
        found = self._tensors.get(device)
        if found is None:
            found = self._tensors[device] = self.domain.tensor(self.rows, torch.bool, device)
        return found

    def choose(self, a: Any, b: Any) -> list[Any]:
        """For each row of the mask its value of ``a``, for the others those of ``b``."""
        return [x if flag else y for flag, x, y in zip(self.rows, self.each(a), self.each(b))]

    def each(self, value: Any) -> Sequence[Any]:
        """A Python value in each row."""
        return each(self.domain, value)

    def where(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """``a`` in the rows of the mask, ``b`` in the others, with the gradients of both."""
        domain, first, second = self.domain, self.domain.history(a), self.domain.history(b)
        with domain.keeping_history():
            found = torch.where(self.tensor(a.device), a, b)
            return domain.with_history(found, (first & self.bits) | (second & ~self.bits))

    def fill(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor with its first row of the mask in all rows that are not the mask's; only the mask's count."""
        domain, rows = self.domain, self.domain.history(tensor)
        with domain.keeping_history():
            found = torch.where(self.tensor(tensor.device), tensor, domain.row(tensor, self.first))
            others = ~self.bits & domain.all if rows >> self.first & 1 else 0
            return domain.with_history(found, (rows & self.bits) | others)


def each(domain: Domain, value: Any) -> Sequence[Any]:
    """A Python value in each row."""
    return value.values if isinstance(value, Rows) else [value] * domain.count


def row_by_row(domain: Domain, function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """What a function of Python values gives in each row."""
    return domain.value([function(*row) for row in zip(*(each(domain, value) for value in values))])


__all__ = ["Domain", "Mask", "Rows", "alike", "each", "row_by_row"]
