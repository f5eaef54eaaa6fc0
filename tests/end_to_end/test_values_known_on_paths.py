"""On a path that says which of several a value is, it is that one: nothing is asked of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import check

CHOICES = {
    "a tensor or nothing": ("v = x * 2 if x.sum() > 0 else None", "v is not None", "v * x", "x"),
    "nothing or a tensor": ("v = None if x.sum() > 0 else x * 2", "v is None", "x", "v + x"),
    "an item of a dict": ('d = {"v": None}\n    if x.sum() > 0:\n        d["v"] = x * 3', 'd["v"] is not None',
                          'd["v"] * x', "x"),
    "an attribute": ("d = Holder()\n    if x.sum() > 0:\n        d.v = x * 3", "d.v is not None", "d.v * x", "x"),
    "a tensor or a pair": ("v = x if x.sum() > 0 else (x, x + 1)", "isinstance(v, tuple)", "v[0] * v[1]", "v + 1"),
    "a dict or a list": ('v = {"a": x} if x.sum() > 0 else [x, x]', "isinstance(v, dict)", 'v["a"]', "v[1] * 2"),
    "two classes": ("v = Holder(x) if x.sum() > 0 else Other(x)", "isinstance(v, Holder)", "v.v", "v.twice()"),
    "one of three": ("v = None\n    if x.sum() > 0:\n        v = x\n    if x.sum() > 3:\n        v = 'text'",
                     "v is None", "x", "x * 2"),
}  # fmt: skip
TESTS = {
    "if": "r = x\n    if {test}:\n        r = {yes}\n    else:\n        r = {no}",
    "not": "r = x\n    if not ({test}):\n        r = {no}\n    else:\n        r = {yes}",
    "and": "r = x\n    if {test} and x[0] > -9:\n        r = {yes}\n    elif not ({test}):\n        r = {no}",
    "or": "r = x\n    if not ({test}) or x[0] > 99:\n        r = x\n    else:\n        r = {yes}",
    "an expression": "r = ({yes}) if {test} else ({no})",
    "a bool in between": "known = {test}\n    r = ({yes}) if known else ({no})",
    "inside another": "r = x\n    if x[0] > -9:\n        if {test}:\n            if x[1] > -9:\n"
                      "                r = {yes}\n        else:\n            r = {no}",
    "in a loop": "r = x\n    while r.sum().abs() < 50:\n        if {test}:\n            r = r * 2 + ({yes})\n"
                 "        else:\n            r = r * 3 + ({no}) + 1\n        r = r + 1",
    "in a function": "def inner():\n        return ({yes}) if {test} else ({no})\n    r = inner()",
    "and written": "r = x\n    if {test}:\n        r = {yes}\n        {change}\n    else:\n        r = {no}",
}  # fmt: skip
HEAD = """import torch

class Holder:
    def __init__(self, v=None):
        self.v = v

class Other(Holder):
    def twice(self):
        return self.v * 2

"""
CALLS = [[torch.tensor(values, dtype=torch.float64).requires_grad_()]
         for values in ([1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [-1.0, 0.5, -2.0])]  # fmt: skip


@pytest.mark.sample(8)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("choice", CHOICES)
def test_as_eager(tmp_path: Path, choice: str, test: str) -> None:
    begin, asked, yes, no = CHOICES[choice]
    change = "d.v = x" if "d." in asked else 'd["v"] = x' if "d[" in asked else "v = x"
    body = TESTS[test].format(test=asked, yes=yes, no=no, change=change)
    end = {"d.": ", d.v", "d[": ', d["v"]'}.get(asked[:2], ", v" if "isinstance" not in asked else "")
    file = tmp_path / "program.py"
    file.write_text(f"{HEAD}def function(x):\n    {begin}\n    {body}\n    return r{end}\n")
    check(module_of(file).function, *CALLS)


def optional(x):
    mask = x > 0 if x.sum() > 0 else None
    y = x
    if mask is not None:
        y = torch.where(mask, y, 0.0)
        y = y + mask.sum()
        y = y * mask
    return y


def test_nothing_is_asked_about_the_others() -> None:
    static = to_static(optional)
    check(optional, *CALLS, static=static)
    program = static.programs[0]
    assert not [op for op in program.block.walk() if op.name in ("switch", "raise")][1:]  # one for "is not None"
