"""Tests with very many cases of one kind: by default a part of them runs, all with the slow ones.

    @pytest.mark.sample(4)                                about every fourth case, the same ones in each run
    @pytest.mark.parametrize("make", CONTAINERS)
    @pytest.mark.parametrize("use", USES)
    def test_...

Which cases run is told by their names alone, so that no dimension of the table is left out and a new case moves none.
What a test says itself comes on top of what ``tests.shares`` measured. Tests that take long are slow ones altogether.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest

from tests.shares import LONG, share


def mark_the_others_slow(items: Sequence[pytest.Item]) -> None:
    """Cases that are not in the sample are slow ones. One case of each test is always in it, unless that takes long."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, cases in tests.items():
        measured, least = share(test), min(cases, key=_number)
        for item in cases:
            marker = item.get_closest_marker("sample")
            kept = measured if marker is None else measured * marker.args[0]
            if test in LONG or (item is not least and _number(item) % kept):
                item.add_marker(pytest.mark.slow)


def _number(item: pytest.Item) -> int:
    return zlib.crc32(item.nodeid.encode())


__all__ = ["mark_the_others_slow"]
