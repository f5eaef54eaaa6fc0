"""Everything runs in C that can, however little it gains; libraries are kept for the whole session."""

from __future__ import annotations

import pytest

from runtime.native import build, emitter, region


@pytest.fixture(autouse=True)
def eager_for_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Operator is worth a region, and one that gives up runs again."""
    monkeypatch.setattr(region, "PATIENCE", 10**9)
    monkeypatch.setattr(build, "strict", True)
    monkeypatch.setattr(emitter, "LEAST", 0)
