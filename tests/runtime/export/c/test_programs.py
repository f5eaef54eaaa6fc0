"""Every program on every path, as a process of its own, with sanitizers, against eager."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.export.c.harness import exported, hold, needs_cc
from tests.runtime.export.c.programs import SAMPLES, Sample

_SOME = ("edges", "greedy", "lstm", "networks")


def _sooner(number: int, one: Sample) -> bool:
    """Whether it is among the default tests: every fourth, and some that hold much."""
    return number % 4 == 0 or one.name in _SOME


@pytest.mark.sample(3)
@needs_cc
@pytest.mark.parametrize("one", [
    pytest.param(one, id=one.name, marks=() if _sooner(number, one) else pytest.mark.slow)
    for number, one in enumerate(SAMPLES)
])  # fmt: skip
def test_exported_c_gives_what_eager_gives(one: Sample, tmp_path: Path) -> None:
    library = exported(one.target, tmp_path / one.name, one.specs)
    hold(library, one.target, one.calls(), one.tolerance)
