"""The transform of `if_expr` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast

LOWERED = {"loop_else", "break_stmt", "continue_stmt", "walrus", "analyses", "load", "local_names"}


def test_alone(alone: Any) -> None:
    alone(LOWERED | {"if_expr"}, gast.IfExp)
