"""Lists that grow, whose items are first a known text (or number, or one of several) and later one of the run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_saved

ITEMS = {
    "text": "f'n{t}'", "format": "f'{t:.3f}'", "str": "str(t)", "known at first": "'n' if t == 1 else f'n{t}'",
    "one of two": "('a' if x[0] > 0 else 'b') + (str(t) if i else '')", "number": "t", "negated": "not t > 2",
    "text or None": "None if x[0] > 0 else f'n{t}'",
}  # fmt: skip
HOLDERS = {
    "itself": "{0}", "pair": "(i, {0})", "nested": "(x.sum(), ('k', {0}))", "dict": "{{'at': i, 'text': {0}}}",
    "list": "[{0}]", "two": "({0}, {0})",
}  # fmt: skip
WAYS = {
    "if": "for i in range(3):\n    if x.sum() > i:\n        log.append({0})\n        t *= 2",
    "break": "for i in range(4):\n    if x.sum() > i:\n        log.append({0})\n        t *= 2\n"
             "    else:\n        break",
    "both": "for i in range(3):\n    if x.sum() > i:\n        log.append({0})\n    else:\n        t *= 2",
    "while": "i = 0\nwhile x.sum() > i and t < 100:\n    log.append({0})\n    t *= 2\n    i += 1",
    "after": "i = 0\nif x.sum() > 0:\n    log.append({0})\nt = t + int(x.abs().sum())\ni = 1\nlog.append({0})",
}  # fmt: skip
CALLS = [(torch.tensor(values),) for values in ([1.0, 0.5], [-1.0, 0.5], [2.0, 3.0], [-1.0, 2.5])]


@pytest.mark.sample(17)
@pytest.mark.parametrize("start", ["1", "1.0"])
@pytest.mark.parametrize(("way", "holder", "item"), list(itertools.product(WAYS, HOLDERS, ITEMS)))
def test_as_eager(way: str, holder: str, item: str, start: str, tmp_path: Path) -> None:
    path = tmp_path / "texts.py"
    body = WAYS[way].format(HOLDERS[holder].format(ITEMS[item])).replace("\n", "\n    ")
    path.write_text(f"def f(x):\n    log, t = [], {start}\n    {body}\n    return log, t\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    try:
        check_saved(names["f"], check(names["f"], *CALLS), tmp_path / "f", *CALLS)
    except Dy2StaticError as error:
        assert error.location is not None
        assert holder in ("dict", "list") or item in ("one of two", "text or None"), error
