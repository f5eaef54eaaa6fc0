"""Every case of the suite; what ran is printed after the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import report, table
from tests.conformance.family import Case
from tests.conformance.runner import run
from tests.conformance.suite import all_cases

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: Case) -> None:
    report.note(run(case))


def test_there_are_enough() -> None:
    assert len(CASES) >= 300


def test_names_differ() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


def test_the_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "conformance.md"
    assert page.read_text() == table.page(), "run python -m tests.conformance.table"
