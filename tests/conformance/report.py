"""How many Blocks of the suite's Programs exist, and how many of them ran."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.executor.coverage import BlockRuns

_counts = {"programs": 0, "blocks": 0, "ran": 0}


def note(blocks: Iterable[BlockRuns]) -> None:
    """Count the Blocks of one case."""
    for block in blocks:
        _counts["programs"] += block.what.startswith("program ")
        _counts["blocks"] += 1
        _counts["ran"] += bool(block.runs)


def line() -> str:
    """One line for people; empty if nothing was counted."""
    if not _counts["blocks"]:
        return ""
    return f"conformance: {_counts['ran']} of {_counts['blocks']} blocks of {_counts['programs']} programs ran"
