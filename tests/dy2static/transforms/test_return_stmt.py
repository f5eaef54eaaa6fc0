"""The transform of `return_stmt` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast


def test_alone(alone: Any) -> None:
    # what a dropped statement bound is local again only where it is declared
    alone({"return_stmt"}, gast.Return, without=("unreachable",))


def test_with_declarations(alone: Any) -> None:
    alone({"return_stmt", "analyses", "load", "local_names"}, gast.Return)
