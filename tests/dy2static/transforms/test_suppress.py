"""The transform of `suppress` alone: the rewritten function does what the original does."""

from __future__ import annotations

from typing import Any

import gast


def test_alone(alone: Any) -> None:
    alone({"suppress"}, gast.With)
