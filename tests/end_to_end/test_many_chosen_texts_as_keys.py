"""Texts of which a path chose each, as keys of dicts, sets and counters: more combinations than can be followed."""

from __future__ import annotations

import collections

import pytest
import torch

from dy2static import to_static
from tests.oracle import check, check_saved

WORDS = ("the", "cat", "sat", "on", "mat")
CALLS = [(torch.tensor(ids),) for ids in ([3, 1, 2, 1, 0], [0, 0, 0, 0, 0], [4, 3, 2, 1, 0], [2, 2, 4, 4, 1])]
TEXTS = {
    "of a list": lambda ids: [WORDS[i] for i in ids.tolist()],
    "of branches": lambda ids: ["low" if i < 1 else "mid" if i < 3 else "high" for i in ids],
    "with known ones": lambda ids: [*(WORDS[i] for i in ids.tolist()), "dog", "cat"],
    "in tuples": lambda ids: [(WORDS[i], int(i > 2)) for i in ids.tolist()],
}


def _in_a_dict(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts


def _in_a_default(words):
    places = collections.defaultdict(list)
    for place, word in enumerate(words):
        places[word].append(place)
    return places


def _in_a_set(words):
    seen = set()
    for word in words:
        seen.add(word)
    return seen


def _by_setdefault(words):
    found = {}
    for place, word in enumerate(words):
        found.setdefault(word, place)
    return found


def _removed(words):
    found = {word: 1 for word in words}
    del found[words[0]]
    found.pop(words[1], None)
    return found


MAKERS = {
    "dict": _in_a_dict, "defaultdict": _in_a_default, "set": _in_a_set, "setdefault": _by_setdefault,
    "removed": _removed, "Counter": collections.Counter, "set of them": set, "dict of pairs": lambda words: dict(
        zip(words, range(len(words)))), "dict comprehension": lambda words: {w: i for i, w in enumerate(words)},
    "set comprehension": lambda words: {word for word in words}, "fromkeys": dict.fromkeys,
    "display": lambda words: {words[0]: 1, words[1]: 2, words[2]: 3, words[3]: 4},
    "set display": lambda words: {words[0], words[1], words[2], words[3]},
}  # fmt: skip
USES = {
    "itself": lambda made: made, "length": len, "sorted": sorted, "in": lambda made: "cat" in made,
    "largest": max, "of itself": lambda made: sum(len(one) for one in sorted(made)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.sample(12)
def test_as_eager(texts, maker, use):
    of, make, see = TEXTS[texts], MAKERS[maker], USES[use]

    def function(ids):
        return see(make(of(ids))), ids + 1

    check(function, *CALLS)


@pytest.mark.parametrize("maker", ["Counter", "dict", "set"])
def test_from_a_file(maker, tmp_path):
    make = MAKERS[maker]

    def function(ids):
        made = make([WORDS[i] for i in ids.tolist()])
        return made, len(made), ids + 1

    static = to_static(function)
    static(*CALLS[0])
    check_saved(function, static, tmp_path / "saved.d2s", *CALLS)


def test_most_common():
    def function(ids):
        counts = collections.Counter(WORDS[i] for i in ids.tolist())
        return counts.most_common(2), counts["cat"], max(counts, key=counts.get), dict(counts)

    check(function, *CALLS)
