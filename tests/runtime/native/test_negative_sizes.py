"""Sizes that a run computes and that are negative: C gives up, and what PyTorch says of them is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

USES: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "view": lambda x, n: x.view(n, -1), "reshape": lambda x, n: x.reshape(-1, n),
    "view of both": lambda x, n: x.view(n, n),
    "expand of one": lambda x, n: x[:1].expand(n),
    "more dimensions": lambda x, n: x.expand(n, 4), "zeros": lambda x, n: torch.zeros(n) + x.sum(),
    "repeat": lambda x, n: x.repeat(n), "narrow": lambda x, n: x.narrow(0, 0, n),
    "new_ones": lambda x, n: x.new_ones(n, 2), "split": lambda x, n: x.split(n)[0],
    "arange": lambda x, n: torch.arange(n) + x.sum(), "full": lambda x, n: torch.full((n,), 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_as_in_eager(name: str) -> None:
    use = USES[name]

    def looped(x: torch.Tensor) -> Any:
        n, total = int(x.sum()), x * 0
        for _ in range(int(x[0])):
            total = total + use(x, n).sum() * 0.5
        return total

    static: Any = dy2static.to_static(looped, backend="c")
    calls = [(torch.tensor([2.0, n - 2.0, 0.0, 0.0]),) for n in (4, 2, 1, -1, -2, 4)]
    check(looped, *calls, static=static, paths=("program",))
