"""Every program on every path, as a process of its own, with sanitizers, against eager."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.export.c.harness import exported, hold, needs_cc
from tests.runtime.export.c.programs import SAMPLES, Sample


@needs_cc
@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: one.name)
def test_exported_c_gives_what_eager_gives(one: Sample, tmp_path: Path) -> None:
    library = exported(one.target, tmp_path / one.name, one.specs)
    hold(library, one.target, one.calls(), one.tolerance)
