"""Slices whose bounds a branch decides, None among them, and bounds that are no ints."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import Dy2StaticError
from tests.oracle import check

READS = [
    "[1, 2, 3][v:]", "[x, x * 2, x * 3][:v]", "(1, 2, 3)[v:]", "'abc'[v:]", "x[v:]", "x[:v]", "x[None, v:]",
    "[[x], [x * 2], [x * 3]][v:]", "list(range(4))[::v]", "x[v:] * 1, [x, x][v:]", "bytes([1, 2, 3])[v:]",
]  # fmt: skip
WRITES = [
    "r[v:] = [9]", "r[:v] = [8, 8]", "del r[v:]", "del r[:v]", "t[v:] = 7.0", "t[:v] *= 2", "r[v:] += [1]",
]  # fmt: skip
BOUNDS = ["1 if c else None", "1 if c else 2", "None if c else 2", "'a' if c else 'b'", "1 if c else 'b'",
          "1.5 if c else 2.5", "x.sum().item()", "int(x.sum()) if c else None"]  # fmt: skip


def _function(body: str, bound: str, folder: Any) -> Any:
    path = folder / "chosen.py"
    path.write_text(f"def f(x):\n    c = x.sum() > 0\n    r, t = [1, 2, 3], x * 1\n    v = {bound}\n    {body}\n")
    names: dict[str, Any] = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.parametrize("bound", BOUNDS)
def test_as_eager(bound: str, tmp_path: Any) -> None:
    counts = {"as eager": 0, "refused": 0}
    bodies = [*(f"return {read}" for read in READS), *(f"{write}; return r, t" for write in WRITES)]
    for number, body in enumerate(bodies):
        folder = tmp_path / str(number)
        folder.mkdir()
        function = _function(body, bound, folder)
        try:
            check(function, (torch.ones(3),), (-torch.ones(3),), paths=("program",))
        except Dy2StaticError as error:
            assert error.code in ("D2S265", "D2S212", "D2S210"), (body, str(error))
            counts["refused"] += 1
        else:
            counts["as eager"] += 1
    print(bound, counts)
    assert counts["as eager"] >= 9
