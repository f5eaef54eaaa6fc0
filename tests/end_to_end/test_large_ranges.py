"""Ranges that a tensor may end: small ones are unrolled, large ones staged loops, and all do as eager does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

CALLS = [(torch.tensor([value, 0.5]).requires_grad_(),) for value in (3.0, 0.1)]


def refined(x: torch.Tensor, step: float, most: int) -> tuple[torch.Tensor, int]:
    count = 0
    for i in range(most):
        before = x
        x = x - step * torch.tanh(x) * (1 + 0.1 * i)
        count += 1
        if (x - before).abs().max() < 0.05:
            break
        if torch.isnan(x).any():
            x = before
            break
    else:
        count = -count
    return x, count


def nested(x: torch.Tensor) -> Any:
    errors, counts = [], []
    for i in range(15):
        x, count = refined(x, 1.0 / (i + 2), 20)
        errors.append(x.abs().sum())
        counts.append(count)
        if errors[-1] < 0.4:
            break
    return x, i, torch.stack(errors), counts


def long(x: torch.Tensor) -> Any:
    return refined(x, 0.5, 30)


def short(x: torch.Tensor) -> Any:
    return refined(x, 0.5, 6)


def numbers_needed(x: torch.Tensor) -> Any:
    """No staged loop can run this: the number says how many tensors there are."""
    for i in range(1, 11):
        for _ in range(16):
            x = x * 0.99
        x = torch.stack([x / i for _ in "abcdefghij"[:i]]).sum(0) * [one for one in range(1, 11)][i - 1] / i
        parts = x.repeat(i).chunk(i)
        if parts[0].sum() < 0.1:
            break
    return parts, i


PROGRAMS = [
    (long, True), (short, False), pytest.param(nested, True, marks=pytest.mark.slow),
    pytest.param(numbers_needed, False, marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.parametrize(("function", "staged"), PROGRAMS)
def test_equals_eager(function: Any, staged: bool) -> None:
    static = check(function, *CALLS, tolerance=1e-5, paths=("program",))
    operators = [op.name for op in static.program.block.walk()]
    assert ("while_loop" in operators) is staged
    assert len(operators) < 500


def test_what_is_to_be_unrolled_is() -> None:
    def f(x: torch.Tensor) -> Any:
        with dy2static.loop_options(unroll=True):
            for i in range(10):
                for _ in range(3):
                    x = (x * 0.99 + 0.01).sin().cos().exp() * 0.3
                if x.sum() < 0.5:
                    break
        return x, i

    static = check(f, *CALLS, tolerance=1e-5, paths=("program",))
    assert not any(op.name == "while_loop" for op in static.program.block.walk())
