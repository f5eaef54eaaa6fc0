"""Everything here runs code that others wrote: it is slow, and skipped where the library is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.name != "test_table.py":
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("default"))  # theirs, not ours to fail on
