"""Which Programs of the conformance suite have a form in ONNX, and whether the models compute what eager computes.

    python -m tests.runtime.export.onnx.conformance      the share, what is refused, and how many calls gave eager's
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.runtime.export import judging
from tests.runtime.export.judging import Outcome
from tests.runtime.export.onnx.harness import export, held


def attempt(target: Any, eager: Any, calls: Sequence[judging.Call], tolerance: float, name: str) -> Outcome:
    """What became of a function or module: see ``judging``."""
    with tempfile.TemporaryDirectory() as room:
        return judging.attempted(
            lambda static: export(static, Path(room)), held, ("D2S540", "D2S541"), target, eager, calls, tolerance
        )


if __name__ == "__main__":
    judging.report_cases(attempt)
