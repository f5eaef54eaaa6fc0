"""``x.__getitem__(n)`` and its like: a method of a tensor that is called by name does what the subscript does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check

INPUTS = ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [-1.0, -1.0, -1.0])


def written(x: Any, n: int) -> Any:
    y = x * 2
    y.__setitem__(n % 3, 5.0)
    torch.Tensor.__setitem__(y, (n + 1) % 3, 6.0)
    return y


def written_in_a_branch(x: Any, n: int) -> Any:
    y = x * 2
    if n > 1:
        y.__setitem__(n - 1, x[0])
    for i in range(n):
        y.__setitem__(i, y.__getitem__(i) + 1)
    return y


USES: list[Callable[[Any, int], Any]] = [
    lambda x, n: x.__getitem__(n - 1),
    lambda x, n: torch.Tensor.__getitem__(x, n % 3),
    lambda x, n: x.__getitem__((n % 3,)),
    lambda x, n: x.__getitem__(slice(0, n)) * 2,
    lambda x, n: list(map(x.__getitem__, range(n))),
    lambda x, n: list(map(x.__getitem__, [0, 1])),
    lambda x, n: x.__getitem__(x > 0),
    lambda x, n: x.__getitem__(5),  # there are not so many
    lambda x, n: x.__delitem__(0),
    written, written_in_a_branch,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(USES)))
@pytest.mark.parametrize("grad", [False, True])
def test_uses(number: int, grad: bool) -> None:
    use = USES[number]

    def function(x: torch.Tensor) -> Any:
        return use(x, int((x > 0).sum()))

    check(function, *((torch.tensor(values, requires_grad=grad),) for values in INPUTS))
