"""Keys that are tuples whose length only the run knows, and lists of tuples of several lengths."""

from __future__ import annotations

import heapq
from collections import Counter, namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import InputSpec, to_static
from tests.oracle import check, check_saved

IDS = [(torch.tensor(values),) for values in ([1, 2, 1, 2, 1, 3], [3, 3, 3, 3], [4, 0, 1, 4, 0, 2, 4, 0])]
SCORES = [(torch.randn(4, 5, generator=torch.Generator().manual_seed(seed)).requires_grad_(),) for seed in (0, 1, 2)]
Beam = namedtuple("Beam", "tokens score")


def no_repeats(ids):
    toks = ids.tolist()
    seen = set()
    for i in range(len(toks) - 2):
        seen.add(tuple(toks[i : i + 3]))
    banned = [w for w in range(5) if (*toks[-2:], w) in seen]
    scores = torch.zeros(5)
    scores[banned] = -1.0
    return banned, scores


def overlap(ids):
    toks = ids.tolist()
    counts = []
    for n in (1, 2, 3):
        first = Counter(tuple(toks[i : i + n]) for i in range(len(toks) - n + 1))
        second = Counter(tuple(toks[-i - n : len(toks) - i]) for i in range(2))
        counts.append(sum((first & second).values()))
    return counts


def runs(ids):
    groups, current = {}, ()
    for v in ids.tolist():
        if current and v < current[-1]:
            groups[current] = groups.get(current, 0) + 1
            current = ()
        current += (v,)
    groups[current] = -1
    return groups, len(groups), (1, 2) in groups


def prefixes(logits):
    beams = [((), 1.0, 0.0)]
    for row in logits.softmax(-1):
        table = {}
        for prefix, a, b in beams:
            for c in range(3):
                p = row[c].item()
                longer = prefix if c == 0 else prefix + (c,)
                n, m = table.get(longer, (0.0, 0.0))
                table[longer] = (n + (a + b) * p, m + p / 4)
        beams = [(p, a, b) for p, (a, b) in sorted(table.items(), key=lambda kv: -sum(kv[1]))[:2]]
    return beams


def named(logits):
    logp = logits.log_softmax(-1)
    beams = [Beam((1,), 0.0)]
    for row in logp:
        grown = []
        for tokens, score in beams:
            if tokens[-1] == 0:
                grown.append(Beam(tokens, score))
            else:
                for i, v in enumerate(row.tolist()):
                    grown.append(Beam(tokens + (i,), score + v))
        beams = heapq.nlargest(2, grown, key=lambda b: b.score)
    return beams, logp[0, beams[0].tokens[-1]]


@pytest.mark.parametrize(("f", "calls"), [
    (no_repeats, IDS), (overlap, IDS), (runs, IDS), (prefixes, SCORES), (named, SCORES),
])  # fmt: skip
def test_keys(f: Any, calls: Any, tmp_path: Path) -> None:
    check_saved(f, check(f, *calls, none_is_zero=True), tmp_path / "f", *calls, none_is_zero=True)


def test_a_key_that_is_not_there() -> None:
    def f(ids):
        toks = ids.tolist()
        seen = {tuple(toks[: toks[0]]): 1}
        return seen[tuple(toks[1:])]

    def caught(ids):
        toks = ids.tolist()
        seen = {tuple(toks[: toks[0]]): 1}
        try:
            return seen[tuple(toks[1:])]
        except KeyError as error:
            return str(error)

    spec = [InputSpec([None], torch.int64)]
    with pytest.raises(KeyError):
        to_static(f, input_spec=spec)(torch.tensor([1, 2, 3]))
    check(caught, *([torch.tensor(one)] for one in ([1, 2, 3], [1, 1], [2, 2, 2])), static=to_static(
        caught, input_spec=spec))
