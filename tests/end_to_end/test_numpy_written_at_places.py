"""NumPy's arrays written at lists of places that only the run knows: ``a[[i, j]] = v``, rows, columns, pairs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_saved

ARRAYS_AND_KEYS = {
    "two": ("zeros(4)", "[i, j]"), "one known": ("zeros(4)", "[i, 1]"), "one place": ("zeros(4)", "[i, i]"),
    "pairs": ("zeros((4, 4))", "[i, j], [j, i]"), "a list and a number": ("zeros((4, 4))", "[i, j], 1"),
    "rows": ("zeros((4, 2))", "[i, j]"), "columns": ("zeros((3, 4))", ":, [i, j]"),
    "parts of rows": ("zeros((4, 2))", "[i, j], :1"), "from the end": ("ones(4)", "[-i, j - 4]"),
    "whole numbers": ("zeros(4, dtype=int)", "[i, j]"), "in three": ("zeros((2, 4, 3))", ":, [i, j], 1"),
}  # fmt: skip
VALUES = {
    "a number": "3.5", "of the run": "x.sum().item()", "an array": "np.array([1., 2.])",
    "an array of the run": "np.ones(2) * x[0].item()", "a list": "[1.0, x[0].item()]", "one item": "np.array([4.0])",
    "exchanged": "a[{0}]", "a view": "a[1:3]", "two by two": "np.array([[1., 2.], [3., 4.]])",
    "of the run, two by two": "np.ones((2, 2)) * x[0].item()", "a column": "np.array([[1.], [2.]])",
}  # fmt: skip
SWAPPED = {"[i, j]": "[j, i]", ":, [i, j]": ":, [j, i]", "[i, j], :1": "[j, i], :1"}
X = torch.tensor([1.0, 2.0, 3.0])
CALLS = [(X, torch.tensor(p), torch.tensor(q)) for p, q in ((1, 2), (3, 0), (2, 2))]


@pytest.mark.sample(9)
@pytest.mark.parametrize("operator", ["=", "+="])
@pytest.mark.parametrize(("where", "value"), list(itertools.product(ARRAYS_AND_KEYS, VALUES)))
def test_as_numpy(where: str, value: str, operator: str, tmp_path: Path) -> None:
    array, key = ARRAYS_AND_KEYS[where]
    path = tmp_path / "places.py"
    path.write_text(
        "import numpy as np\nimport torch\ndef f(x, p, q):\n    i, j = int(p), int(q)\n"
        f"    a = np.{array}\n    a += np.arange(a.size).reshape(a.shape)\n"
        f"    a[{key}] {operator} {VALUES[value].format(SWAPPED.get(key, key))}\n    return a, torch.from_numpy(a)\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    try:
        names["f"](*CALLS[0])
    except (ValueError, TypeError):
        return  # no value of that size
    try:
        check_saved(names["f"], check(names["f"], *CALLS), tmp_path / "f", *CALLS)
    except Dy2StaticError as error:  # lists of the run as values of more dimensions, floats of the run in whole numbers
        assert error.code in ("D2S210", "D2S213")
        assert value == "a list" or where == "whole numbers" or operator == "+=" and value in (
            "two by two", "of the run, two by two", "a column"), error
