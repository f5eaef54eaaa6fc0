"""The transform of `while_stmt` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast

STEPS = "loop_else break_stmt continue_stmt walrus analyses load local_names while_stmt"


def test_alone(alone: Any) -> None:
    alone(set(STEPS.split()), gast.While)
