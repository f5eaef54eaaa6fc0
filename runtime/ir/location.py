"""Where in the user's source an Operator came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A place in the user's file: 1-based ``line``, 0-based ``column``, the function's name and the line's text."""

    file: str
    line: int
    column: int = 0
    function: str = ""
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
