"""Sets of numbers of the run, gone over in the order of Python's hash table."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import Dy2StaticError, to_static
from tests.oracle import check, check_saved
from tests.over_rows import judge

MADE = {
    "add": "s = set()\n    for v in xs:\n        s.add(v)", "of a list": "s = set(xs)",
    "comprehension": "s = {v for v in xs}",
    "display": "s = {xs[0], xs[1], xs[2]}", "update": "s = set()\n    s.update(xs)\n    s.update([xs[0] + 100, 3])",
    "on paths": "s = set()\n    for v in xs:\n        if v > 5:\n            s.add(v)",
    "floats": "s = {v / 4 for v in xs}",
    "pairs": "s = set(zip(xs, xs[1:]))", "cleared": "s = set(xs)\n    s.discard(7)\n    s.clear()\n    s.update(xs)",
    "in a dict": "near = defaultdict(set)\n    for a, b in zip(xs, xs[1:]):\n        near[a % 2].add(b)\n"
                 "    s = near[1]",
}  # fmt: skip
USED = {
    "for": "out = []\n    for v in s:\n        out.append(v)", "list": "out = list(s), tuple(s), [*s]",
    "comprehension": "out = [str(v) for v in s]", "enumerate": "out = [(i, v) for i, v in enumerate(s)]",
    "the least": "out = min(s, key=lambda v: str(v)[-1]), sorted(s, key=lambda v: str(v)[-1])",
    "written": "out = torch.zeros(2)\n    for i, v in enumerate(s):\n        out[i % 2] = len(str(v)) * (i + 1)",
    "zip": "out = dict(zip(range(9), s))",
}  # fmt: skip
BODY = "def f(x):\n    xs = x.tolist()\n    {made}\n    {used}\n    return out\n"
CALLS = [(torch.tensor(values),) for values in (
    [1, 12, 1, 33, 2, 12, 17, 65, 9], [7, 7, 7, 7, 7, 7, 7, 7, 7], [91, 42, 53, 4, 65, 36, 97, 128, 8])]  # fmt: skip


def function(path: Path, made: str, used: str) -> Any:
    head = "from collections import defaultdict\nimport torch\n"
    path.write_text(head + BODY.format(made=MADE[made], used=USED[used]))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


CASES = list(itertools.product(MADE, USED))


@pytest.mark.sample(4)
@pytest.mark.parametrize(("made", "used"), CASES)
def test_order(made: str, used: str, tmp_path: Path) -> None:
    f = function(tmp_path / "f.py", made, used)
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


@pytest.mark.parametrize("change", [
    "s.discard(12)", "s.remove(xs[0])", "s -= {12}", "s = s | {3}", "s = s.copy()", "s.update({1, 2})",
    "s &= {1, 2, 3}",
    "if x[0] > 50:\n        s.discard(12)", "s = set({v: 1 for v in xs})", "s.update(Counter(xs))",
])  # fmt: skip
def test_sets_to_which_more_has_happened(change: str, tmp_path: Path) -> None:
    """Their order depends on what was there before: it is refused, or the run ends."""
    path = tmp_path / "f.py"
    path.write_text(f"from collections import Counter\ndef f(x):\n    xs = x.tolist()\n    s = set(xs)\n    {change}\n"
                    "    return sorted(s), list(s)\n")  # fmt: skip
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    try:
        given = to_static(names["f"])(*CALLS[2])
    except (Dy2StaticError, RuntimeError) as error:
        assert getattr(error, "code", "D2S265") == "D2S265"
    else:
        assert given == names["f"](*CALLS[2])


def test_a_set_that_changes_meanwhile() -> None:
    def f(x):
        s = set(x.tolist())
        for v in s:
            if v == 42:
                s.add(1000)
        return sorted(s)

    check(f, *CALLS)


def test_of_each_row() -> None:
    """Under ``vmap`` the order is that of the row."""
    def f(x):
        s = set(x.tolist())
        total = 0
        for place, v in enumerate(s):
            total += (place + 1) * v
        return total * torch.ones(())

    calls = [(torch.tensor(values),) for values in ([1, 12, 33], [33, 2, 9], [7, 7, 64])]
    found = judge(lambda: f, calls)
    assert found == "same" or found.startswith("D2S")
