"""Prints the coverage of the suite."""

from __future__ import annotations

from typing import Any

from tests.conformance import report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line after the tests."""
    if report.line():
        terminalreporter.write_line(report.line())
