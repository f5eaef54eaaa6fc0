"""One tensor as an item of two lists that grow, or an item of one that becomes one of another: writes reach all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from runtime.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import check, check_saved

WAYS = {
    "comprehension": "other = [t for t in got]",
    "comprehension of tuples": "other = [(t, 1)[0] for t in got]",
    "append in a loop": "other = []\n    for t in got:\n        other.append(t)",
    "append by number": "other = []\n    for i in range(n):\n        other.append(got[i])",
    "one item again and again": "a = got[0]\n    other = []\n    for i in range(n):\n        other.append(a)",
    "a view of an item": "other = []\n    for t in got:\n        other.append(t.view(3))",
    "insert": "other = []\n    for t in got:\n        other.insert(0, t)",
    "an item that replaces": "other = [x] * 3\n    for i in range(n):\n        other[i] = got[i]",
    "added lists": "other = []\n    for t in got:\n        other = other + [t]",
    "extend": "other = []\n    for t in got:\n        other.extend([t, t])",
    "a slice": "other = got[:2]",
    "a copy": "other = list(got)",
    "deque": "other = deque()\n    for t in got:\n        other.append(t)",
    "one on a path": "other = [got[0]]\n    if x.sum() > 0:\n        other.append(got[1])",
    "a variable of a loop": "t = x\n    for i in range(n):\n        t = got[i]\n    other = []\n"
                            "    for i in range(n):\n        other.append(t)",
    "one of two": "t = x\n    if x.sum() > 0:\n        t = got[0]\n    other = []\n    for i in range(n):\n"
                  "        other.append(t)",
    "a third list": "middle = [t for t in got]\n    other = [t for t in middle]",
    "a nested list": "rows = []\n    for t in got:\n        rows.append([t])\n    other = [row[0] for row in rows]",
    "map": "other = list(map(lambda t: t, got))",
    "zip": "other = [t for t, s in zip(got, got)]",
    "filtered": "other = [t for t in got if t.sum() > -100]",
}  # fmt: skip
BEFORE = {
    "the same tensor": "got = []\n    for i in range(n):\n        got.append(y)",
    "new tensors": "got = []\n    for i in range(n):\n        y = y + 1\n        got.append(y)",
}
BOTH = "got, other = [], []\n    for i in range(n):\n        w = y + i\n        got.append(w)\n        other.append(w)"
"""Two lists with the same items, which nothing else has."""
WRITES = {
    "the tensor": "y.add_(1)",
    "an item of the first": "got[0].add_(1)",
    "an item of the second": "other[0].add_(1)",
    "a view of an item": "other[-1][:1].mul_(3)",
    "an item in a loop": "for t in other:\n        t.mul_(2)",
    "a write on a path": "if x.sum() > 0:\n        got[-1].add_(1)",
    "nothing": "pass",
}
READS = {"the first": "got[0] * 1", "the second": "other[0] * 1, other[-1] * 1", "the tensor": "y * 1", "lengths": "n"}
SOURCE = """import torch
from collections import deque
def f(x, y):
    y = y * 1
    n = int((x.abs() > 0).sum())
    {before}
    {way}
    {write}
    return {read}
"""
CASES = [(before, way, write, read) for before in BEFORE.values() for way in WAYS.values() for write in WRITES.values()
         for read in READS.values()] + [(BOTH, "pass", write, read) for write in WRITES.values()
                                        for read in READS.values()]  # fmt: skip
IS = ("other[0] is y", "other[0] is got[0]", "other[-1] is got[-1]", "[t is y for t in other]", "got[0] is x")
_NUMBERS = iter(range(10**9))


def _judge(source: str, folder: Path, saved: bool = False) -> str:
    """Whether a program is as eager or refused for memory, identity or a number as a key."""
    number = next(_NUMBERS)
    path = folder / f"program_{number}.py"
    path.write_text(source)
    function = module_of(path, f"items_of_several_lists_{number}").f
    calls = [(sign * torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, requires_grad=grad))
             for sign in (1, -1) for grad in (True, False)]  # fmt: skip
    try:
        static = check(function, *calls)
        if saved:
            check_saved(function, static, folder / f"{number}", *calls)
    except Dy2StaticError as error:
        assert error.code in ("D2S222", "D2S264"), error
        return error.code
    return "same"


@pytest.mark.sample(40)
@pytest.mark.parametrize("case", CASES, ids=["-".join(case).replace("\n", ";") for case in CASES])
def test_writes(case, tmp_path):
    before, way, write, read = case
    outcome = _judge(SOURCE.format(before=before, way=way, write=write, read=read), tmp_path)
    if write == "pass":
        assert outcome == "same"


@pytest.mark.sample(20)
@pytest.mark.parametrize("asked", IS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", BEFORE)
def test_identity(before, way, asked, tmp_path):
    _judge(SOURCE.format(before=BEFORE[before], way=WAYS[way], write="pass", read=asked), tmp_path)


def test_what_is_not_shared_is_written(tmp_path):
    """A write to a tensor that neither list can hold, or to an item's copy, works."""
    writes = ("z = y * 2\n    z.add_(1)\n    y = z", "t = other[0].clone()\n    t.add_(1)", "x = x * 1\n    x.add_(1)")
    for write in writes:
        source = SOURCE.format(before=BEFORE["the same tensor"], way=WAYS["comprehension"], write=write,
                               read="got[0] * 1, other[0] * 1, y * 1, x * 1")  # fmt: skip
        assert _judge(source, tmp_path, saved=True) == "same"


def test_two_lists_that_share_nothing(tmp_path):
    source = SOURCE.format(
        before="got, other, third = [], [], []\n    for i in range(n):\n        got.append(y)\n"
               "        other.append(y)\n        third.append(x * i)",
        way="pass", write="z = y * 1\n    third.append(z)\n    z.mul_(1)",
        read="got[0] * 1, other[0] * 1")  # fmt: skip
    assert _judge(source, tmp_path) == "same"
