"""Sets and dicts of numbers of the run inside of dicts and lists: read, changed, compared and given back."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved

HELD = {
    "set": ("set()", "{one}.add(b)"), "dict": ("{{}}", "{one}[b] = {one}.get(b, 0) + 1"),
    "Counter": ("Counter()", "{one}[b] += 1"), "ordered": ("OrderedDict()", "{one}[b] = a"),
    "pairs": ("{{}}", "{one}[a, b] = b"), "list": ("[]", "{one}.append(b)"),
}  # fmt: skip
HOLDER = {
    "setdefault": "one = near.setdefault(a, {new})",
    "in": "if a not in near:\n            near[a] = {new}\n        one = near[a]",
    "rows": "if a > 2:\n            rows.append({new})\n        one = rows[-1]",
}  # fmt: skip
USED = {
    "lengths": "return [len(v) for v in near.values()], [len(v) for v in rows]", "whole": "return near, rows",
    "sorted": "return [sorted(v) for v in near.values()], [sorted(v) for v in rows]",
    "same": "return near, list(near.values()), [v is rows[0] for v in rows]",
    "changed": "for v in list(near.values()):\n        v.clear()\n    return near, rows",
    "loop": "n, k = 0, 0\n    while n < 3 and k < len(xs):\n        if xs[k] in near:\n"
            "            n += len(near[xs[k]])\n        k += 1\n    return n, k, rows",
}  # fmt: skip
BODY = """from collections import Counter, OrderedDict
def f(x):
    xs = x.tolist()
    near, rows = {{}}, [{new}]
    for a, b in zip(xs, xs[1:]):
        {holder}
        {change}
    {used}
"""
CALLS = [(torch.tensor(values),) for values in ([1, 2, 1, 3, 2, 2, 1], [7] * 7, [1, 2, 3, 4, 5, 6, 7])]
CASES = list(itertools.product(HELD, HOLDER, USED))


def function(path: Path, held: str, holder: str, used: str) -> Any:
    new, change = HELD[held]
    new = new.format()
    path.write_text(BODY.format(
        new=new, holder=HOLDER[holder].format(new=new), change=change.format(one="one"), used=USED[used]))  # fmt: skip
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("held", "holder", "used"), CASES)
def test_in_lists(held: str, holder: str, used: str, tmp_path: Path) -> None:
    f = function(tmp_path / "f.py", held, holder, used)
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)
