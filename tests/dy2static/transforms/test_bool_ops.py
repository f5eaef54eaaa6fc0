"""The transform of `bool_ops` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast

LOWERED = {"loop_else", "break_stmt", "continue_stmt", "walrus", "analyses", "load", "local_names"}


def test_alone(alone: Any) -> None:
    alone(LOWERED | {"bool_ops"}, gast.BoolOp, gast.UnaryOp)
