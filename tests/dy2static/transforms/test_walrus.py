"""The transform of `walrus` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast


def test_alone(alone: Any) -> None:
    alone({"loop_else", "break_stmt", "continue_stmt", "walrus"}, gast.NamedExpr)
