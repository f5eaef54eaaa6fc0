"""Prints the coverage of the suite; lets a debugger look on.

    python -m pytest tests/conformance --frames

runs every case while a trace function reads the local variables of all frames. The results must be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance import report
from tests.frames import looked_at


def pytest_addoption(parser: Any) -> None:
    """The option for the debugger."""
    parser.addoption("--frames", action="store_true", help="read f_locals of all frames while the cases run")


@pytest.fixture(autouse=True)
def debugger(request: pytest.FixtureRequest) -> Iterator[None]:
    """Looks on where it was asked for."""
    if not request.config.getoption("--frames", default=False):
        yield
        return
    with looked_at():
        yield


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line after the tests."""
    if report.line():
        terminalreporter.write_line(report.line())
