"""Every use of a list or deque that grew is equal to eager or refused at its line: the table of ``grown_uses``."""

from __future__ import annotations

import collections
import random
from pathlib import Path

import pytest

from tests.end_to_end import grown_uses

LISTS = ["branch", "loop", "subclass", "tuple", "dict", "attribute", "argument"]
DEQUES = ["deque", "deque_loop", "maxlen", "older_deque"]
PLAIN = ["method", "syntax", "builtin", "library"]
KNOWN = frozenset({
    "D2S210", "D2S212", "D2S213", "D2S214", "D2S226", "D2S228", "D2S229", "D2S230", "D2S238", "D2S251", "D2S252",
    "D2S253", "D2S254", "D2S260", "D2S261", "D2S263", "D2S264", "D2S265", "D2S266", "D2S267", "D2S268", "D2S277",
    "D2S222", "D2S250",
})  # fmt: skip
"""The codes that may refuse a use. D2S250: a sum of tuples of which only the run knows how many there are."""


def _judged(rows: list[tuple[str, str, str, str]], folder: Path) -> collections.Counter[str]:
    counts: collections.Counter[str] = collections.Counter()
    wrong = []
    functions = grown_uses.load([source for _, _, _, source in rows], folder)
    for (making, kind, use, _), function in zip(rows, functions):
        outcome, why = grown_uses.judge(function, kind)
        counts[outcome] += 1
        if outcome not in ("equal", "refused") or outcome == "refused" and why.split()[0] not in KNOWN:
            wrong.append(f"{outcome}: {making}, {kind}: {use!r}: {why}")
    assert not wrong, "\n".join(wrong)
    return counts


def test_some_uses(tmp_path: Path) -> None:
    """A draw from the whole table, the same in every run."""
    rows = list(grown_uses.programs([*LISTS, *DEQUES], list(grown_uses.KINDS), PLAIN))
    counts = _judged(random.Random(0).sample(rows, 12), tmp_path)
    assert counts["equal"] and counts["refused"]


UNPACKED = [
    "a, b = xs; r = a, b", "a, *b, c = xs; r = a, b, c", "r = every(*xs)", "r = (*xs,)",
    "r = list(itertools.accumulate(xs))", "z = zip(xs, xs)\nr = list(z), list(z)", "r = str((xs, 1))",
    "xs[0:1] = [{item}, {item}]; r = len(xs)", "del xs[0]; r = len(xs)", "r = (lambda q: [1 for v in q])(xs)",
    "r = xs < [{first}]",
]  # fmt: skip
"""What was wrong, without a word, before containers had a boundary."""


@pytest.mark.parametrize("making", ["branch", "deque"])
def test_uses_of_each_route(making: str, tmp_path: Path) -> None:
    rows = [(making, "tensors", use, grown_uses.program(making, "tensors", use)) for use in UNPACKED]
    _judged(rows, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(grown_uses.KINDS))
@pytest.mark.parametrize("making", [*LISTS, *DEQUES])
def test_all_uses(making: str, kind: str, tmp_path: Path) -> None:
    groups = [*PLAIN, "deque"] if making in DEQUES else PLAIN
    rows = list(grown_uses.programs([making], [kind], groups))
    counts = _judged(rows, tmp_path)
    assert sum(counts.values()) == len(rows)
