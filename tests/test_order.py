"""Slow files come first, and every file that is named is there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from tests.order import ROOT, SLOW, seconds, slowest_first


def test_the_files_are_there() -> None:
    assert [file for file in SLOW if not (ROOT / file).is_file()] == []


def test_the_slowest_come_first_and_the_others_stay_in_order() -> None:
    slow, slower = sorted(SLOW, key=SLOW.__getitem__)[:: len(SLOW) - 1]
    names = ["tests/a.py::two", "tests/a.py::one", f"{slow}::x", "tests/b.py::x", f"{slower}::y", f"{slower}::x"]
    items = [SimpleNamespace(nodeid=name) for name in names]
    slowest_first(items)
    assert [item.nodeid for item in items] == [*names[4:], names[2], *names[:2], names[3]]


def test_a_report_is_read_by_file(tmp_path: Path) -> None:
    report = tmp_path / "times.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.test_order" name="a" time="1.5"/>'
        '<testcase classname="tests.test_order.Class" name="b" time="2"/></testsuite></testsuites>'
    )
    assert seconds(report) == {"tests/test_order.py": 3.5}
