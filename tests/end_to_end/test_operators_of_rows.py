"""Operators of lists and dicts that stand in a list which grew, with what Python takes beside them, or refuses."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.from_files import module_of
from tests.oracle import difference

OPERATORS = ("+", "*", "-", "/", "//", "%", "**", "@", "&", "|", "<<")
OTHERS = ("0.5", "2", "True", "None", "'a'", "(1,)", "{}", "[1]", "{1}", "1j", "{'n': 7}", "float(x.sum())", "x", "q")
ROWS = ("xs", "rows[-1]", "q", "dicts[-1]", "d")
CALLS = list(itertools.product(ROWS, OPERATORS))
PROGRAM = """
def function{number}(x):
    xs = []
    rows = [[x]]
    dicts = [{{"n": 1, "t": x}}]
    q = rows[-1]
    d = dicts[-1]
    for i in range(int(x.sum())):
        xs.append(x * i)
        rows.append([x * i])
        rows[-1].append(x)
        dicts.append({{"n": i, "t": x * i}})
        dicts[-1]["n"] += 1
    return {expression}
"""


def _outcome(function: Any) -> Any:
    try:
        return function(torch.ones(3))
    except TypeError as error:
        return str(error)


@pytest.mark.sample(60)
@pytest.mark.parametrize("row, operator", CALLS)
def test_they_are_pythons(tmp_path: Path, row: str, operator: str) -> None:
    """Python's answer or its words; what formats text, merges dicts or asks a tensor may be refused."""
    sides = [f"{row} {operator} {other}" for other in OTHERS] + [f"{other} {operator} {row}" for other in OTHERS]
    programs = [PROGRAM.format(number=number, expression=one) for number, one in enumerate(sides)]
    (tmp_path / "operators_of_rows.py").write_text("".join(programs))
    module = module_of(tmp_path / "operators_of_rows.py")
    for number, expression in enumerate(sides):
        function = getattr(module, f"function{number}")
        expected = _outcome(function)
        try:
            got = _outcome(to_static(function))
        except TraceError as error:
            assert "'a' %" in expression or operator == "|" or " x" in f" {expression}", (expression, str(error))
            continue
        assert not difference(got, expected), expression
