"""Python's numbers in exported programs: the values, and the runs that end where Python raises."""

from __future__ import annotations

import pytest
import torch

from dy2static import InputSpec
from tests.runtime.export.onnx import formulas
from tests.runtime.export.onnx.test_scalars import FLOATS, INTS, floats, ints, to_round
from tests.runtime.export.torch_export.harness import check, held, loaded

N = [InputSpec([], "int64", "a"), InputSpec([], "int64", "b")]
F = [InputSpec([], "float64", "a"), InputSpec([], "float64", "b")]


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", [
    "a + b", "a - b", "a * b", "a // b", "a % b", "divmod", "a / b", "-a", "abs(a)", "~a", "a & b", "a | b", "a ^ b",
    "a << b", "a >> b", "a ** 3", "a < b", "a == b", "a != b", "min", "max", "not a", "bool(a) and b", "float(a)",
    "a + 0.5", "a * True", "a >= 2.5",
])  # fmt: skip
def test_ints(text):
    check(formulas.TABLE[text], N, *ints(*INTS), tolerance=0.0)


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", [
    "a + b", "a - b", "a * b", "a // b", "a % b", "a / b", "-a", "abs(a)", "a ** 3", "a < b", "a == b", "min",
    "max", "not a", "int(a)", "round(a)", "floor", "ceil", "trunc", "isnan", "isfinite", "sqrt", "is_integer",
])  # fmt: skip
def test_floats(text):
    check(formulas.TABLE[text], F, *floats(*FLOATS), tolerance=1e-15)


def test_a_number_as_a_size_an_index_and_an_operand(tmp_path):
    def f(x, n):
        k = int(n)
        row = x[k]
        return x * k + 1.5 * k, torch.zeros(abs(k) + 1, 2), row, x[: abs(k)].sum(0)

    specs = [InputSpec([None, 3], "float32", "x"), InputSpec([], "int64", "n")]
    calls = [(torch.randn(4, 3), torch.tensor(n)) for n in (0, 2, -1, 3, 4, -5)]
    model = loaded(check(f, specs, *calls), tmp_path)
    for call in calls:
        held(model, f, call)


def test_numbers_of_sizes_stay_sizes():
    def f(x):
        half = x.shape[0] // 2
        y = x[:half] + x[half : 2 * half]
        return y.reshape(half * 3), half, x.shape[0] / 4, half > 1, max(half, 3)

    check(f, [InputSpec([None, 3], "float32", "x")], *[(torch.randn(n, 3),) for n in (2, 3, 6, 7, 1, 0)])


def test_a_number_of_a_tensor_keeps_the_dtype_that_pytorch_gives():
    def f(x, n):
        k, h = n.item(), x.sum().item()
        return x * k, x + h, x.sum() * h, n * h, n * k, x > k

    specs = [InputSpec([3], "float32", "x"), InputSpec([], "int32", "n")]
    check(f, specs, *[(torch.randn(3), torch.tensor(n, dtype=torch.int32)) for n in (0, 1, -7, 2**30)])


def test_round_to_digits():
    """Python rounds the exact value: 2.675 is a little less than it looks, 0.125 is just between two."""
    check(formulas.TABLE["round(a, n)"], F, *floats(*((one, 0.0) for one in to_round())), tolerance=0.0)
