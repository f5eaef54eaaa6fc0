"""Python numbers beside NumPy's numbers and arrays, one of them known only in the run: what comes out has eager's type,
which mostly is NumPy's, and its value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.from_files import module_of
from tests.oracle import check, difference

NUMBERS = [np.int64(3), np.int32(-2), np.float64(1.5), np.float32(0.5), np.bool_(True), np.uint8(7), np.float16(2.0),
           np.array([1, -2]), np.array([0.5, 2.0], dtype=np.float32), np.array(3)]  # fmt: skip
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
             operator.lt, operator.ge, operator.eq, operator.ne]  # fmt: skip
INPUTS = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0.5, -0.25, 0.25])]


def outcome(function: Callable[..., Any], x: torch.Tensor) -> Any:
    try:
        return function(x)
    except TraceError:
        raise
    except Exception as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # divisions by zero
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda one: f"{one.dtype}-{one.ndim}")
@pytest.mark.parametrize("applied", OPERATORS, ids=lambda one: one.__name__)
def test_operators(applied: Callable[..., Any], number: Any, kind: type, left: bool) -> None:
    def function(x: Any) -> Any:
        mine = kind(x.sum())
        result = applied(number, mine) if left else applied(mine, number)
        return result, type(result).__name__

    converted = to_static(function)
    for x in INPUTS:
        expected = outcome(function, x)
        try:
            got = outcome(converted, x)
        except TraceError as error:  # which only the run can say: whether an int fits
            assert error.code == "D2S210" and kind is int and number.dtype in ("int32", "uint8")
            return
        assert not difference(got, expected)


DTYPES = ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool", "complex64", "complex128"]
PYTHONS = [3, -2, 1.5, True, 1 + 0j, 1 - 2j, None, "a", [1, 2], (1.5,)]
BINARY = "+ - * / // % ** == != < <= > >= & | ^ << >>".split()
EXPRESSIONS = [
    *(f"s {op} p" for op in BINARY), *(f"p {op} s" for op in BINARY), *(f"s {op} s" for op in BINARY),
    "divmod(s, p)", "divmod(p, s)", "pow(p, s)", "operator.eq(p, s)", "operator.add(p, s)", "sum([s, s], p)",
    "p in [s]", "s in [p]", "(p, 1) == (s, 1)", "abs(p - s)", "s.__radd__(p)", "max(s, p)",
]  # fmt: skip
ALONE = [
    "-s", "+s", "~s", "abs(s)", "round(s)", "round(s, 1)", "np.isscalar(s)", "[1, 2, 3][s]", "(1, 2, 3)[s]",
    "'abc'[s]", "s == None", "None != s", "np.float32(2) + s", "np.int64(2) == s", "np.array([1, 2]) * s",
    "np.add(s, s)",
]  # fmt: skip


def _of_array(expression: str, tmp_path: Path) -> Callable[..., Any]:
    (tmp_path / "one.py").write_text(
        f"import operator\nimport numpy as np\ndef f(x, p):\n    s = x.numpy()[0]\n    r = {expression}\n"
        "    return r, type(r).__name__\n")
    return module_of(tmp_path / "one.py").f  # type: ignore[no-any-return]


def _hold(f: Callable[..., Any], dtype: str, other: Any) -> None:
    """Results, their types, and what eager raises, of an item of an array that is not 0 and of one that is."""
    for value in (2, 0):
        x = torch.from_numpy(np.array([value, 1], dtype=dtype))
        results: list[Any] = []
        for function in (f, to_static(f)):
            try:
                results.append(function(x.clone(), other))
            except TraceError as error:
                assert error.code in ("D2S213", "D2S215")
                return
            except Exception as error:
                results.append((type(error), str(error)))
        assert not difference(results[1], results[0]), (value, results)


@pytest.mark.sample(60)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("other", PYTHONS, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_item_of_an_array_beside_what_is_pythons(expression: str, dtype: str, other: Any, tmp_path: Path) -> None:
    """A scalar of NumPy's has operators of its own: complex numbers of Python's are asked before a ``float64``."""
    _hold(_of_array(expression, tmp_path), dtype, other)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("expression", ALONE)
def test_an_item_of_an_array(expression: str, dtype: str, tmp_path: Path) -> None:
    _hold(_of_array(expression, tmp_path), dtype, None)


def count(x: Any) -> Any:
    return np.int64(2) * abs(int(x.sum()))


def in_place(x: Any) -> Any:
    total = int(x.sum())
    total *= np.float32(0.5)
    total += 1
    return total


USES: dict[str, Callable[[Any], Any]] = {
    "range": lambda x: list(range(count(x))),
    "sizes": lambda x: (torch.zeros(count(x)), x[: count(x)], x.repeat(count(x) + 1)),
    "numbers": lambda x: (int(count(x)), float(count(x)), count(x) + 1, -count(x), abs(count(x)), max(count(x), 3)),
    "branch": lambda x: 1 if count(x) > 3 else 2,
    "tensor": lambda x: (x * count(x), x * (x.sum().item() + np.float32(1)), np.ones(2) * x.sum().item()),
    "item": lambda x: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13][count(x)],
    "functions": lambda x: (np.sqrt(count(x)), np.maximum(count(x), 3), np.array([1, 2]) * int(x.sum())),
    "in place": in_place,
    "classes": lambda x: (isinstance(count(x), np.integer), isinstance(count(x), int), count(x).ndim),
    "items of x": lambda x: (x.numpy()[0] * int(x.sum()), int(x.sum()) - x.numpy()[0], x.numpy() < int(x.sum())),
}


@pytest.mark.parametrize("name", USES)
def test_uses(name: str) -> None:
    check(USES[name], *[(x,) for x in INPUTS], paths=("program",))
