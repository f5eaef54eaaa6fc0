"""A list that may be one of several, each with items that may be numbers or tensors, given to what reads all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim.lbfgs import _strong_wolfe

from tests.oracle import check

READS: dict[str, Callable[[Any], Any]] = {
    "max": max, "min": min, "sum": sum, "any": any, "sorted": sorted, "tuple": tuple, "len": len,
    "max with a key": lambda items: max(items, key=abs),
    "zip": lambda items: list(zip(items, [1, 2])),
    "reversed": lambda items: list(reversed(items)),
    "stars": lambda items: (lambda *given: given[-1])(*items),
    "for": lambda items: [item * 2 for item in items],
    "item": lambda items: items[0] - items[-1],
    "in": lambda items: 0 in items,
    "sum of lists": lambda items: items + [1],
    "extremes": lambda items: min(max(items) - 1, 2 - min(items)),
}  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", READS)
def test_what_is_read_of_it(name: str) -> None:
    read = READS[name]

    def function(x: torch.Tensor) -> Any:
        first: Any = 0
        second: Any = 1.5
        if x[0] > 0:
            first = x.sum()
        if x[1] > 0:
            second = x.sum() * 2
        if x.sum() > 3:
            items = [first, second]
        elif x.sum() > 2:
            items = [second]
        elif x.sum() > 1:
            items = [second, first]
        elif x.sum() > 0:
            items = [0, second]
        else:
            items = [first, 3.5]
        if x[2] > 3:
            items[0] = x.mean()
        return read(items)

    inputs = ([1.0, 2, 4], [-1.0, -1, 2.5], [-1.0, 1, 1.5], [-1.0, 1, 0.5], [1.0, -3, 0], [-1.0, -3, 5])
    check(function, *[(torch.tensor(one),) for one in inputs])


@pytest.mark.slow
@pytest.mark.parametrize("as_number", [False, True])
def test_a_line_search_of_torch(as_number: bool) -> None:
    """That of L-BFGS: its bracket is one of five lists, of numbers and tensors, which a loop writes."""

    def search(x: torch.Tensor) -> Any:
        def objective(point: torch.Tensor, t: Any, direction: torch.Tensor) -> tuple[Any, torch.Tensor]:
            at = point + t * direction
            value = ((at - 3) ** 2).sum() + (at**4).sum()
            return value.item() if as_number else value, 2 * (at - 3) + 4 * at**3

        value, slope = objective(x, 0.0, x)
        direction = -slope
        return _strong_wolfe(objective, x, 0.7, direction, value, slope, slope.dot(direction), max_ls=4)

    check(search, *[(torch.tensor(one),) for one in ([1.0, 2.0], [10.0, -4.0], [0.1, 0.9], [3.1, 3.0], [0.0, 0.0])])
