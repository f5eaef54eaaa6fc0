"""The transform of `local_names` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast


def test_alone(alone: Any) -> None:
    alone({"analyses", "load", "local_names"}, gast.If, gast.For, gast.While)
