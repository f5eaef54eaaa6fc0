"""A part of a tensor that has another rank on each path is written, for sizes that vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check


def _add(x: Any) -> Any:
    x[0] += 1
    return x


def _set(x: Any) -> Any:
    x[0] = 5
    return x


def _row(x: Any) -> Any:
    y = x[-1]
    y.mul_(3)
    return x, y


def _rest(x: Any) -> Any:
    x[1:] -= 2
    return x


def _whole(x: Any) -> Any:
    y = x[:]
    x.add_(1)
    return x, y


WRITES: list[Callable[[Any], Any]] = [_add, _set, _row, _rest, _whole]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mixed", [True, False])
def test_a_part_is_written(mixed: bool, write: Callable[[Any], Any], grad: bool) -> None:
    def f(x: torch.Tensor, a: torch.Tensor) -> Any:
        if x.sum() > 0:
            x = a * 2
        else:
            x = x * 2
        return write(x)

    def calls() -> Any:
        for n, sign in ((2, 1), (2, -1), (3, 1), (3, -1), (5, -1), (4, 1)):
            other = torch.ones(n + 2) if mixed else torch.ones(n + 2, 3)
            yield (torch.ones(n, 3) * sign).requires_grad_(grad), other

    check(f, *calls(), tolerance=1e-6)
