"""Which Programs of the conformance suite have a form in an exported program, and whether they compute what eager does.

    python -m tests.runtime.export.torch_export.conformance      the share, what is refused, how many calls gave eager's
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.runtime.export import judging
from tests.runtime.export.judging import Outcome
from tests.runtime.export.torch_export.harness import export, held


def attempt(target: Any, eager: Any, calls: Sequence[judging.Call], tolerance: float, name: str) -> Outcome:
    """What became of a function or module: see ``judging``."""
    return judging.attempted(export, held, ("D2S550", "D2S551"), target, eager, calls, tolerance)


if __name__ == "__main__":
    judging.report_cases(attempt)
