"""A list of lists, dicts or objects that is made anew inside of loops and branches, and grows in a later loop."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check


@dataclass
class Cell:
    """A record of a user's."""

    value: Any


KINDS = {"list": ("[{}]", "[0]"), "dict": ("{{'v': {}}}", "['v']"), "object": ("Cell({})", ".value")}
OUTER = {"loop": "while outer.sum() < 2:\n        outer = outer + 1", "branch": "if outer.sum() < 2:\n        pass"}
INNER = {
    "loop": "while inner.sum() < 2:\n            inner = inner + 1",
    "branch": "if inner.sum() < 2:\n            pass",
}
BEFORE = {
    "nothing": "", "read": "row = g[0]", "replaced": "g[-1] = NEW2",
    "iterated": "for row in g:\n                x = x + row.V",
}  # fmt: skip
LATER = {"appended": "", "written": "    g[0].V = x * 3\n", "each": "    for row in g:\n        row.V = row.V + 1\n"}
"""``NEW`` and ``NEW2`` stand for a new row, ``row.V`` for what it holds."""

CASES = ["-".join(names) for names in itertools.product(KINDS, OUTER, INNER, BEFORE, LATER)]


def source_of(case: str) -> str:
    """The program of a case."""
    kind, outer, inner, before, later = case.split("-")
    made, held = KINDS[kind]
    text = f"""
def f(x, y):
    g = [NEW]
    outer, inner = y * 1, y * 1
    {OUTER[outer]}
        {INNER[inner]}
            {BEFORE[before]}
            g = [NEW2]
    while y.sum() < 9:
        y = y + 1
        g.append(NEW)
{LATER[later]}    return [row.V for row in g], len(g), x
"""
    return text.replace(".V", held).replace("NEW2", made.format("x * 2")).replace("NEW", made.format("x"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    """All programs, in one file."""
    path = Path(tmp_path_factory.mktemp("rows")) / "rows_made_anew.py"
    text = "from tests.end_to_end.test_rows_made_anew import Cell\n\n"
    for number, case in enumerate(CASES):
        text += source_of(case).replace("def f(", f"def f{number}(") + "\n"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.sample(12)
@pytest.mark.parametrize("case", CASES)
def test_as_eager(case: str, programs: types.ModuleType) -> None:
    x = torch.tensor([0.5, -1.0, 2.0])
    calls = [(x.clone().requires_grad_(), torch.full((3,), value)) for value in (-1.0, 0.5, 4.0)]
    check(getattr(programs, f"f{CASES.index(case)}"), *calls)


def added_or_made_anew(x, y, n):
    rows = [{"n": 1, "t": x}]
    if x.sum() > 0:
        rows.append({"n": n, "t": y * 2})
    i = 0
    while i < 2 and y.sum() > 0:
        i = i + 1
        if x.sum() > 0:
            rows.append({"n": n, "t": y})
        else:
            rows = [{"n": row["n"] + 1, "t": row["t"]} for row in rows]
    return rows


def objects_added_or_made_anew(x, y, n):
    rows = [Cell(1)]
    if x.sum() > 0:
        rows.append(Cell(n))
    i = 0
    while i < 2 and y.sum() > 0:
        i = i + 1
        if x.sum() > 0:
            rows.append(Cell(n))
        else:
            rows = [Cell(row.value + 1) for row in rows]
    return rows


@pytest.mark.parametrize("function", [added_or_made_anew, objects_added_or_made_anew])
def test_a_path_of_an_iteration_makes_the_list_anew(function):
    check(function, *[(torch.tensor([a]), torch.tensor([b]), 2) for a in (1.0, -1.0) for b in (1.0, -1.0)])


class Slotted:
    __slots__ = ("never", "value")


class Below(Slotted):
    """One more, of which nothing is set."""

    __slots__ = ("more",)


@pytest.mark.parametrize("cls", [Slotted, Below])
def test_objects_whose_first_slot_is_never_set(cls: type) -> None:
    """They were refused as read by code that is not converted (D2S253)."""
    def function(x: torch.Tensor) -> Any:
        items: list[Any] = []
        for number in range(int(x.sum().abs())):
            one = cls()
            one.value = x * number
            items.append(one)
        for one in items:
            one.value = one.value + 1
        if x.sum() > 3:
            items[1].value = x * 7
        total = x
        for one in items:
            total = total + one.value * (2 if hasattr(one, "never") else 3)
        return total, [one.value for one in items]

    check(function, [(torch.tensor([a, b]),) for a, b in ((1.0, 2.0), (3.0, 2.0), (0.0, 0.0), (-3.0, -2.0))])


MADE = {"called": "dict(a={})", "of pairs": "dict([('a', {})])", "of a zip": "dict(zip(['a'], [{}]))"}
PROGRAMS = {
    "rows": """
    items = []
    for number in range(int(x.sum().abs())):
        items.append(NEW * number)
    for one in items:
        one['a'] = one['a'] + 1
    for one in items:
        x = x + one['a']
    return x, len(items)
""",
    "beside": """
    items, kept = [], NEW
    for number in range(int(x.sum().abs())):
        items.append({'a': x * number})
        other = NEW
        other['a'] = other['a'] * 2
        x = x + other['a'] * 0
    if x.sum() > 0:
        kept = NEW
    for one in items:
        one['a'] = one['a'] + kept['a']
    for one in items:
        x = x + one['a']
    return x
""",
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", MADE)
def test_dicts_that_a_call_of_dict_makes(kind: str, program: str, tmp_path: Path) -> None:
    """They are what a display makes (they were refused, D2S220 or D2S226)."""
    body = PROGRAMS[program].replace("NEW * number", MADE[kind].format("x * number")).replace(
        "NEW", MADE[kind].format("x"))
    path = tmp_path / "program.py"
    path.write_text(f"def f(x):{body}")
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check(module.f, [(torch.tensor([a, b]),) for a, b in ((1.0, 2.0), (-1.0, -2.0), (0.0, 0.0), (2.0, 2.0))])
