"""The page about what runs as Python: its example runs."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plain_python.md"


def test_the_example() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried >= 7 and not failed


def test_the_numbers_are_those_of_the_code() -> None:
    from dy2static import pieces, verdicts

    text = PAGE.read_text("utf-8")
    assert f"fewer than {verdicts.FEW_EXACT} operators ({verdicts.FEW}," in text
    assert (verdicts.FAILURES, verdicts.TRACES, verdicts.PART_FAILURES, verdicts.PART_TRACES) == (3, 8, 1, 2)
    assert verdicts.CALLS == 4 and pieces.MADE == 8
