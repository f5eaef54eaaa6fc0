"""The transform of `for_stmt` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast

STEPS = "loop_else break_stmt continue_stmt analyses load local_names for_stmt"


def test_alone(alone: Any) -> None:
    alone(set(STEPS.split()), gast.For)
