"""Gradients of recurrent cells in staged loops and branches, for batches of several sizes: one size serves for none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tests.oracle import check_module

RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "hidden": lambda h, c: h, "cell": lambda h, c: c, "both": lambda h, c: (h, c), "sum": lambda h, c: (h * c).sum(),
}  # fmt: skip


class Long(nn.Module):
    def __init__(self, construct: str, result: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.cell, self.construct, self.result = nn.LSTMCell(3, 4), construct, result

    def forward(self, x: torch.Tensor) -> Any:
        h = c = x.new_zeros(x.shape[0], 4)
        if self.construct == "loop":
            for _ in range(int((x > 0).sum().clamp(max=3))):
                h, c = self.cell(x, (h, c))
        elif self.construct == "while":
            while h.sum().abs() < 0.2 and c.sum() < 0.5:
                h, c = self.cell(x, (h + 0.1, c + 0.1))
        elif x.sum() > 0:
            h, c = self.cell(x, (h, c))
        return self.result(h + x.sum(), c + x.sum())


class Short(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> Any:
        h = x.new_zeros(x.shape[0], 4)
        other = h
        for _ in range(int((x > 0).sum().clamp(max=3))):
            h, other = self.cell(x, h), h
        return other


def calls() -> list[list[torch.Tensor]]:
    return [[torch.linspace(-0.3, 1, 3 * n).reshape(n, 3).requires_grad_()] for n in (2, 4, 3, 5, 2, 1)]


@pytest.mark.parametrize("construct", ["loop", "while", "branch"])
@pytest.mark.parametrize("result", RESULTS)
def test_long_memory(result: str, construct: str) -> None:
    check_module(lambda: Long(construct, RESULTS[result]), *calls(), tolerance=1e-5)


@pytest.mark.parametrize("kind", [nn.GRUCell, nn.RNNCell])
def test_short_memory(kind: Any) -> None:
    check_module(lambda: Short(kind(3, 4)), *calls(), tolerance=1e-5)
