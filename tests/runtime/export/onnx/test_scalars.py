"""Python's numbers in models: the values, and the runs that end where Python raises."""

from __future__ import annotations

import random

import pytest
import torch

from dy2static import InputSpec
from tests.runtime.export.onnx.harness import check

N = [InputSpec([], "int64", "a"), InputSpec([], "int64", "b")]
F = [InputSpec([], "float64", "a"), InputSpec([], "float64", "b")]
INTS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (6, 3), (-6, 3), (5, 0), (2**62, 2), (2**62, 4), (-(2**63), -1),
        (2**53 + 1, 3), (2**31, 2**31), (2**32, 2**31), (1, 63), (3, 62), (1, 62), (-5, 64), (9, -1)]  # fmt: skip
FLOATS = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-0.0, 3.0), (0.0, -3.0), (1e300, 1e300), (1.0, 0.0), (-8.0, 0.5),
          (2.5, 1.0), (3.5, -1.0), (float("inf"), 2.0), (float("-inf"), 0.5), (float("nan"), 1.0), (1e19, 2.0),
          (0.3, 0.1), (6.0, 0.1)]  # fmt: skip


def to_round() -> list[float]:
    """Floats just between two decimals, a little beside, too large to have any, and random ones."""
    chance = random.Random(7)
    around = [2.675, 0.125, 0.375, -0.125, 2.5, -0.5, 1.005, 0.15, 0.25, 0.35, -0.04, 1e-320, 5e15 + 0.5, 2.0**52 + 0.5,
              1e16, -1e300, float("inf"), float("nan"), 0.0, -0.0]  # fmt: skip
    eighths = [chance.randrange(-4000, 4000) / 8 for _ in range(30)]
    fives = [(10 * chance.randrange(-99999, 99999) + 5) / 10 ** chance.randrange(1, 7) for _ in range(100)]
    return [*around, *eighths, *fives, *(chance.uniform(-1, 1) * 10 ** chance.randrange(9) for _ in range(50))]


def ints(*pairs: tuple[int, int]) -> list[tuple[torch.Tensor, ...]]:
    return [tuple(map(torch.tensor, pair)) for pair in pairs]


def floats(*pairs: tuple[float, float]) -> list[tuple[torch.Tensor, ...]]:
    return [tuple(torch.tensor(one, dtype=torch.float64) for one in pair) for pair in pairs]


def of(text: str):
    """A function of two numbers."""
    from tests.runtime.export.onnx import formulas

    return formulas.TABLE[text]


@pytest.mark.sample(5)
@pytest.mark.parametrize("text", [
    "a + b", "a - b", "a * b", "a // b", "a % b", "divmod", "a / b", "-a", "abs(a)", "~a", "a & b", "a | b", "a ^ b",
    "a << b", "a >> b", "a ** 3", "a < b", "a == b", "a != b", "min", "max", "not a", "bool(a) and b", "float(a)",
    "a + 0.5", "a * True", "a >= 2.5",
])  # fmt: skip
def test_ints(text, tmp_path):
    check(of(text), tmp_path, N, *ints(*INTS), tolerance=0.0)


@pytest.mark.sample(5)
@pytest.mark.parametrize("text", [
    "a + b", "a - b", "a * b", "a // b", "a % b", "a / b", "-a", "abs(a)", "a ** 3", "a < b", "a == b", "min",
    "max", "not a", "int(a)", "round(a)", "floor", "ceil", "trunc", "isnan", "isfinite", "sqrt", "is_integer",
])  # fmt: skip
def test_floats(text, tmp_path):
    check(of(text), tmp_path, F, *floats(*FLOATS), tolerance=1e-15)


def test_round_to_digits(tmp_path):
    """Python rounds the exact value: 2.675 is a little less than it looks, 0.125 is just between two."""
    check(of("round(a, n)"), tmp_path, F, *floats(*((one, 0.0) for one in to_round())), tolerance=0.0)
