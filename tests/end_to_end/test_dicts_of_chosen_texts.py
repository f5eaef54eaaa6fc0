"""Dicts and counters with known texts as keys, of which only the run knows which are there, copied and counted."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from typing import Any

import pytest
import torch

from tests.oracle import check


def of_a_defaultdict(x: Any) -> Any:
    t: Any = defaultdict(list)
    for i, v in enumerate(x.flatten().tolist()):
        t["pos" if v > 0 else "neg"].append(i)
    return dict(t)


def on_two_paths(x: Any) -> Any:
    t: Any = defaultdict(list)
    for i, v in enumerate(x.flatten().tolist()):
        if v > 0:
            t["pos"].append(i)
        else:
            t["neg"].append(i)
    return dict(t), t


def of_a_dict(x: Any) -> Any:
    t: Any = {}
    for i, v in enumerate(x.flatten().tolist()):
        t.setdefault("pos" if v > 0 else "neg", []).append(i)
    copied = dict(t)
    copied["more"] = x.sum()
    return copied, t


def ordered(x: Any) -> Any:
    t: Any = {}
    for i in range(x.shape[0]):
        k = "pos" if x[i].sum() > 0 else "neg"
        if k not in t:
            t[k] = []
        t[k].append(x[i])
    return OrderedDict(t), dict(t, extra=x)


def values_are_the_same_objects(x: Any) -> Any:
    t: Any = {}
    if x.sum() > 0:
        t["a"] = []
    t["b"] = []
    copied = dict(t)
    t["b"].append(x)
    return copied, all(copied[k] is t[k] for k in t)


def counted(x: Any) -> Any:
    return Counter("pos" if v > 0 else "neg" for v in x.flatten().tolist())


def counted_of_a_list(x: Any) -> Any:
    words = ["up" if row.sum() > 0 else "down" for row in x]
    return Counter(words).most_common(1), Counter(words)


def sorted_keys(x: Any) -> Any:
    t: Any = defaultdict(list)
    for i in range(int((x > 0).sum())):
        t["odd" if i % 2 else "even"].append(i)
    return sorted(t), sorted(t, key=len, reverse=True), {k: len(t[k]) for k in sorted(t)}


FUNCTIONS = [
    sorted_keys,
    of_a_defaultdict, on_two_paths, of_a_dict, ordered, values_are_the_same_objects, counted, counted_of_a_list,
]  # fmt: skip
INPUTS = [torch.randn(3, 3, generator=torch.Generator().manual_seed(3)) + shift for shift in (0.0, 0.7, -0.7)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    calls = [(x.requires_grad_(),) for x in INPUTS]
    check(function, *calls, (torch.ones(3, 3),), paths=("program",), none_is_zero=True)
