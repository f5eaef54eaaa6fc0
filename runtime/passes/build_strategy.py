"""What a user may say about how a Program is built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BuildStrategy:
    """Options of the passes a Program goes through before it runs. There are none yet.

    >>> BuildStrategy()
    BuildStrategy()
    """


__all__ = ["BuildStrategy"]
