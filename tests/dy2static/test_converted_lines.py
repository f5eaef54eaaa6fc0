"""Converted code stays code that a person can read: how many lines it has for each of the user's."""

from __future__ import annotations

from pathlib import Path

import gast

from scripts.converted_lines import Count, groups, lines_of, measure

MOST = 1.8
"""So many lines for each of the user's, in the conformance suite as a whole."""


def test_the_conformance_suite_is_little_longer_when_it_is_converted() -> None:
    """A function of one expression may be far longer: the longest are named where all together are too long."""
    rows = [
        (f"{path.name}:{function}", is_dense, count)
        for path in groups()["conformance suite"]
        for function, is_dense, count in measure(path, "full")
    ]
    assert len(rows) > 600
    added = sorted(rows, key=lambda row: row[2].user - row[2].converted)
    longest = "; ".join(f"{name} {count.user} -> {count.converted}" for name, _, count in added[:10])
    for what in ("all", "dense"):
        ratio = sum((count for _, is_dense, count in rows if is_dense or what == "all"), Count()).ratio
        assert 1 < ratio <= MOST, f"{what}: {ratio:.2f} lines for each of the user's, the most in {longest}"


def test_what_counts(tmp_path: Path) -> None:
    text = 'def f(x):\n    """Text."""\n\n    y = (\n        x\n    )\n    return y\n'
    assert lines_of(gast.parse(text).body[0]) == 3
    assert Count(2, 3) + Count(4, 9) == Count(6, 12) and Count(6, 12).ratio == 2 and Count().ratio == 0
    file = tmp_path / "some.py"
    file.write_text(
        "import torch\n\n\ndef dense(x):\n    if x.sum() > 0:\n        return x\n    return x + 1\n\n\n"
        "def other(x):\n    x = x + 1\n    x = torch.relu(x)\n    x = x * 2\n    x = x - 1\n    return x\n"
    )
    found = {name: (is_dense, count.user) for name, is_dense, count in measure(file, "full")}
    assert found == {"dense": (True, 4), "other": (False, 6)}
