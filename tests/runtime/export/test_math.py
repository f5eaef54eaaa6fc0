"""Every function of ``math`` in every target: eager's result or the end of the run, or refused at the user's line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import InputSpec
from dy2static.errors import StorageError, TraceError
from tests.runtime.export.c import harness as c_harness
from tests.runtime.export.onnx import harness as onnx_harness
from tests.runtime.export.torch_export import harness as torch_harness

SPECS = [InputSpec([], "float64", "a"), InputSpec([], "float64", "b")]
NUMBERS = [0.0, -0.0, 0.5, -2.5, 3.0, 800.0, 1e308, float("inf"), float("-inf"), float("nan")]
PAIRS = [(one, NUMBERS[place - 3]) for place, one in enumerate(NUMBERS)]
PAIRS += [(-2.5, 3.0), (0.0, -1.0), (-8.0, 0.5), (float("inf"), float("-inf")), (1.0, float("nan"))]
FUNCTIONS = {name: one for name, one in vars(math).items() if callable(one) and not name.startswith("_")}
NOT_TRACED = ("D2S210", "D2S267")


def _of(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    def one(a, b):
        return function(a.item()), b

    def two(a, b):
        return function(a.item(), b.item()), b

    return one if count == 1 else two


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether it is a function of so many floats, and gives a number."""
    try:
        return isinstance(function(*[0.5] * count), (bool, int, float))
    except (TypeError, ValueError):
        return False


def _is_long(function: Callable[..., Any], number: float) -> bool:
    """Whether its result is an int of more than 64 bits."""
    try:
        made = function(number)
    except (OverflowError, ValueError):
        return False
    return isinstance(made, int) and made >= 2**63


CASES = [(name, count) for name, count in itertools.product(FUNCTIONS, (1, 2)) if _takes(FUNCTIONS[name], count)]


@pytest.mark.sample(16)
@pytest.mark.parametrize("target", ["c", "onnx", "torch"])
@pytest.mark.parametrize(("name", "count"), CASES)
def test_as_eager_or_refused(name: str, count: int, target: str, tmp_path: Path) -> None:
    if target == "c" and c_harness.CC is None:
        pytest.skip("there is no C compiler")
    function = _of(FUNCTIONS[name], count)
    pairs = PAIRS if count == 2 else [(one, 1.0) for one in NUMBERS if not _is_long(FUNCTIONS[name], one)]
    calls = [tuple(torch.tensor(one, dtype=torch.float64) for one in pair) for pair in pairs]
    try:
        if target == "torch":
            torch_harness.check(function, SPECS, *calls, tolerance=1e-12)
        elif target == "onnx":
            onnx_harness.check(function, tmp_path, SPECS, *calls, tolerance=1e-12)
        else:
            c_harness.hold(c_harness.exported(function, tmp_path / "net", SPECS), function, calls, tolerance=1e-12)
    except StorageError as error:
        assert error.code == {"c": "D2S530", "onnx": "D2S540", "torch": "D2S550"}[target]
        assert error.location is not None and error.location.text.strip().startswith("return function(a.item()")
        assert not list(tmp_path.iterdir()), "something was written"
    except TraceError as error:
        assert error.code in NOT_TRACED
