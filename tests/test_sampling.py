"""A part of many cases runs by default, and all of them are there."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling
from tests.sampling import mark_the_others_slow
from tests.shares import LONG, ROOT, SECONDS, SHARES, long, shares


def cases(count: int, every: int | None) -> list[Any]:
    def made(number: int) -> Any:
        marks: list[Any] = [] if every is None else [pytest.mark.sample(every).mark]
        return SimpleNamespace(
            nodeid=f"tests/test_of.py::test_it[{number}]", marks=marks, add_marker=marks.append,
            get_closest_marker=lambda name: next((mark for mark in marks if mark.name == name), None),
        )

    return [made(number) for number in range(count)]


def kept(items: list[Any]) -> list[str]:
    mark_the_others_slow(items)
    return [item.nodeid for item in items if item.get_closest_marker("slow") is None]


def test_about_every_nth_case_runs() -> None:
    assert 70 < len(kept(cases(400, 4))) < 130
    assert len(kept(cases(400, None))) == 400


def test_a_new_case_moves_none() -> None:
    assert set(kept(cases(100, 3))) - set(kept(cases(200, 3))) == set()


def test_one_case_runs_however_few_there_are() -> None:
    for count in range(1, 20):
        assert kept(cases(count, 1000))


def test_measured_shares_are_of_tests_that_there_are() -> None:
    for name in (*SHARES, *LONG):
        file, _, test = name.partition("::")
        path = ROOT / file
        assert path.is_file() and f"def {test.rpartition('::')[2]}(" in path.read_text(), name


def test_shares_are_made_of_what_was_measured(tmp_path: Path) -> None:
    cases = "".join(
        f'<testcase classname="tests.test_sampling" name="{name}[{number}]" time="{time}"/>'
        for name, count, time in (("test_a", 40, 0.5), ("test_b", 40, 0.01), ("test_c", 2, 9.0))
        for number in range(count)
    )
    report = tmp_path / "times.xml"
    report.write_text(f"<testsuite>{cases}</testsuite>")
    most = min(40, math.ceil(40 * 0.5 / SECONDS))
    found = {"tests/test_sampling.py::test_a": most, "tests/test_sampling.py::test_c": 2}
    assert shares(report) == found
    assert long(report) == ["tests/test_sampling.py::test_c"]


def test_long_tests_are_slow_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "LONG", frozenset({"tests/test_of.py::test_it"}))
    assert not kept(cases(3, None))
