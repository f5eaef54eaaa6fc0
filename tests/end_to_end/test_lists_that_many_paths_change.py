"""Lists to which many branches add lists, dicts and objects, which are changed afterwards: what each item is."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved

ITEMS = {
    "list": ("[v * 2]", "{one}.append(v)"), "dict": ("{{'n': v * 2, 'k': 1}}", "{one}['n'] = {one}['n'] + v"),
    "of lists": ("[[v * 2]]", "{one}[-1].append(v)"), "tuple": ("(1, [v * 2])", "{one}[1].append(v)"),
    "record": ("Record(v * 2, [v])", "{one}.second.append(v)"), "object": ("Plain(v * 2, 1)", "{one}.second += 1"),
    "dict of lists": ("{{'a': [v * 2]}}", "{one}['a'].append(v)"), "several": ("[v] * 2", "{one}.pop()"),
}  # fmt: skip
PUT = {
    "append": "rows.append({new})", "insert": "rows.insert(0, {new})", "extend": "rows += [{new}]",
    "rebind": "rows = rows + [{new}]",
    "two lists": "rows.append({new}); other.append(rows[-1])",
}  # fmt: skip
ELSE = {
    "last": "{change}", "pop": "rows.pop()", "place": "rows[-1] = {new}", "again": "rows.append(rows[0])",
    "swap": "rows[0], rows[-1] = rows[-1], rows[0]", "copy": "rows = rows[:]",
}  # fmt: skip
BODY = """
def f(x):
    rows, other = [{new0}], []
    for v in x:
        if v > 0:
            {put}
        elif rows:
            {orelse}
    if rows:
        {change0}
    return rows, other, len(rows), {same}
"""
VALUES = [1.0, -2, 3, 5, -1, 2, -4, 7, -5]
CALLS = [(torch.tensor([sign * value for value in VALUES], requires_grad=True),) for sign in (1, -1)]
CALLS.append((torch.tensor([abs(value) for value in VALUES], requires_grad=True),))


@dataclass
class Record:
    first: Any
    second: Any


class Plain:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


def _with_first(text: str) -> str:
    return re.sub(r"\bv\b", "x[0]", text)


def function(path: Path, item: str, put: str, orelse: str) -> Any:
    new, change = ITEMS[item]
    new = new.format()
    change = change.format(one="rows[-1]")
    same = "[one is rows[0] for one in rows], [one is rows[0] for one in other]"
    if item == "tuple":  # no identity is told of tuples
        same = "1"
    path.write_text(BODY.format(
        new0=_with_first(new), put=PUT[put].format(new=new), change0=_with_first(change), same=same,
        orelse=ELSE[orelse].format(new=new, change=change)))  # fmt: skip
    names: dict[str, Any] = {"Record": Record, "Plain": Plain}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


CASES = list(itertools.product(ITEMS, PUT, ELSE))


@pytest.mark.sample(24)
@pytest.mark.parametrize(("item", "put", "orelse"), CASES)
def test_what_each_item_is(item: str, put: str, orelse: str, tmp_path: Path) -> None:
    f = function(tmp_path / "f.py", item, put, orelse)
    check_saved(f, check(f, *CALLS, none_is_zero=True), tmp_path / "f", *CALLS, none_is_zero=True)
