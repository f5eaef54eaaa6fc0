"""Tests with very many cases of one kind: by default a part of them runs, all with the slow ones.

    @pytest.mark.sample(4)                                about every fourth case, the same ones in each run
    @pytest.mark.parametrize("make", CONTAINERS)
    @pytest.mark.parametrize("use", USES)
    def test_...

Which cases run is told by their names alone, so that no dimension of the table is left out and a new case moves none.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest


def mark_the_others_slow(items: Sequence[pytest.Item]) -> None:
    """Cases of marked tests that are not in the sample are slow ones. One case of each test is always in it."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample") is not None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        least = min(cases, key=_number)
        for item in cases:
            marker = item.get_closest_marker("sample")
            assert marker is not None
            if item is not least and _number(item) % marker.args[0]:
                item.add_marker(pytest.mark.slow)


def _number(item: pytest.Item) -> int:
    return zlib.crc32(item.nodeid.encode())


__all__ = ["mark_the_others_slow"]
