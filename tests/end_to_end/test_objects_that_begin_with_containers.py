"""Objects that an iteration makes, one of several in a variable: what their attributes hold, in whatever order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved

HELD = {
    "list": "[v * {n}]", "longer": "[v] * {n}", "dict": "{{'a': v * {n}}}", "keys": "{{'k{n}': v}}", "set": "{{{n}}}",
    "tuple": "(v,) * {n}", "tensor": "v * {n}", "number": "{n}",
}  # fmt: skip
IN_LISTS = tuple(held for held in HELD if held != "set")
BODY = """
def f(x):
    v = x[0]
    best, i = {cls}({first1}, {second1}), 0
    while x[i] < 9:
        v = x[i]
        best = {cls}({first1}, {second1}) if v > 0 else {cls}({first2}, {second2})
        i += 1
    return best.first, best.second

def among(x):
    made = []
    for v in x:
        if v > 0:
            made.append({cls}({first1}, v.item()))
    best = max(made, key=lambda one: one.second)
    return best.first, best.second

def until(x):
    made, i = [], 0
    while x[i] < 9:
        v = x[i]
        if v > 0:
            made.append({cls}({first1}, {second1}))
        i += 1
    return len(made), [one.first for one in made], [one.second for one in made]
"""
CALLS = [(torch.tensor(values, requires_grad=True),) for values in ([1.0, -2, 3, 9], [1.0, -2, 9], [9.0])]


@dataclass
class Record:
    first: Any
    second: Any


class Plain:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


def functions(path: Path, cls: type, first: str, second: str) -> dict[str, Any]:
    texts = {f"{part}{n}": HELD[held].format(n=n) for part, held in (("first", first), ("second", second))
             for n in (1, 2)}
    path.write_text(BODY.format(cls=cls.__name__, **texts))
    names: dict[str, Any] = {"Record": Record, "Plain": Plain}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


@pytest.mark.sample(9)
@pytest.mark.parametrize(("cls", "first", "second"), list(itertools.product((Record, Plain), HELD, HELD)))
def test_made_in_an_iteration(cls: type, first: str, second: str, tmp_path: Path) -> None:
    f = functions(tmp_path / "made.py", cls, first, second)["f"]
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


@pytest.mark.sample(9)
@pytest.mark.parametrize(("cls", "first", "second"), list(itertools.product((Record, Plain), IN_LISTS, IN_LISTS)))
def test_appended_on_a_path(cls: type, first: str, second: str, tmp_path: Path) -> None:
    until = functions(tmp_path / "until.py", cls, first, second)["until"]
    check_saved(until, check(until, *CALLS), tmp_path / "f", *CALLS)


@pytest.mark.parametrize("first", ["list", "dict", "tuple", "tensor", "number"])
@pytest.mark.parametrize("cls", [Record, Plain])
def test_the_largest_of_a_list(cls: type, first: str, tmp_path: Path) -> None:
    among = functions(tmp_path / "among.py", cls, first, "number")["among"]
    check_saved(among, check(among, *CALLS), tmp_path / "f", *CALLS)
