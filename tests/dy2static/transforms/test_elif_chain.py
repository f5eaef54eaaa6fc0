"""Long chains of ``elif`` and of early returns: cut into pieces, they do what they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gast
import pytest

from dy2static.conversion import convert


def chain(count: int) -> str:
    links = "".join(f"    {'el' if i else ''}if log(x) == {i}:\n        y = {i} * 2\n" for i in range(count))
    return f"def f(x):\n{links}    else:\n        y = 'none'\n    return y\n"


def guards(count: int) -> str:
    parts = "".join(f"    if log(x) == {i}:\n        return {i} * 2\n    x += 0\n" for i in range(count))
    return f"def f(x):\n{parts}    return -x\n"


def loop(count: int) -> str:
    kinds = ("continue", "break", "return s")
    parts = "".join(f"        if k == {i}:\n            {kinds[i % 3]}\n        s += {i}\n" for i in range(count))
    return f"def f(x):\n    s = 0\n    for k in range(x, 3 * x, 3):\n{parts}    return s, k\n"


def test_alone(alone: Any) -> None:
    alone({"elif_chain"}, gast.If)


@pytest.mark.parametrize("count", [20, 21, 41, 90])
@pytest.mark.parametrize("make", [chain, guards, loop])
def test_long(make: Any, count: int, tmp_path: Path, program_file: Any, same_outcome: Any) -> None:
    path = tmp_path / "long.py"
    path.write_text(f"LOG = []\n\n\ndef log(x):\n    LOG.append(x)\n    return x\n\n\n{make(count)}")
    module = program_file(f"long_{make.__name__}_{count}", path)
    numbers = sorted({0, 1, 2, 18, 19, 20, 21, 22, 39, 40, 41, count - 1, count, count + 1})
    same_outcome(module.f, convert(module.f), module, [(number,) for number in numbers])
