"""TypeErrors that say which class an operand has name Python's, where the operand is staged."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.oracle import check

USES = [
    "7 - v", "divmod(7, v)", "divmod(v, 7)", "v @ v", "v[0]", "v()", "1 in v", "[1] * v", "1 << v", "6 & v", "-v",
    "[1] + v", "list(v)", "[i for i in v]", "len(v)", "v.missing", "v @ 2", "2 @ v", "[1, 2][v]",
    "list(enumerate([1], v))",
    "ord(v)", "abs(v)", "round(v)", "sum([1, v])", "sorted([1, v])", "max(1, v)", "chr(v)", "v < 'a'", "v >= [1]",
    "v.__setitem__", "[0 for v[0] in [1]]",
]  # fmt: skip
VALUES = ["'a' if c else 'bc'", "int(x.sum())", "x.sum().item()", "bool(c)"]
REVERSED = {"max(1, v)", "sorted([1, v])"}
"""Python asks the other operand, which is staged, and names it first."""


@pytest.mark.parametrize("value", VALUES)
def test_as_eager(value: str, tmp_path: Any) -> None:
    counts = {"as eager": 0, "refused": 0}
    for number, use in enumerate(USES):
        if "'" in value and use in REVERSED:
            continue
        path = tmp_path / f"use{number}.py"
        path.write_text(f"def f(x):\n    c = x.sum() > 0\n    v = {value}\n    return {use}\n")
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        try:
            check(names["f"], (torch.ones(2),), (-torch.ones(2),), paths=("program",))
        except Dy2StaticError as error:
            internal = error.code == "D2S290" and use not in ("1 << v", "6 & v", "2 @ v", "v @ v", "v @ 2")
            assert not internal, (use, str(error))
            counts["refused"] += 1
        else:
            counts["as eager"] += 1
    print(value, counts)
    assert counts["as eager"] > 18


def entered(x: Any) -> Any:
    with x.sum().item():
        return x


def stored_in(x: Any) -> Any:
    n = int(x.sum())
    n[0] = 1  # type: ignore[index]
    return x


def deleted_from(x: Any) -> Any:
    n = x.sum().item()
    del n[0]
    return x


@pytest.mark.parametrize("function", [entered, stored_in, deleted_from])
def test_statements(function: Any) -> None:
    check(function, (torch.ones(2),), paths=("program",))


@pytest.mark.parametrize("value", VALUES)
def test_keywords(value: str, tmp_path: Any) -> None:
    path = tmp_path / "keywords.py"
    path.write_text(f"def f(x):\n    c = x.sum() > 0\n    v = {value}\n    return (lambda **k: x)(**v)\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(TypeError, match="argument after \\*\\* must be a mapping, not (str|int|float|bool)"):
        dy2static.to_static(names["f"])(torch.ones(2))
