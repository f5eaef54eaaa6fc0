"""Deques that are given a list that grew, or rotated by a number that only the run knows."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.end_to_end.vectors import on_every_path
from tests.oracle import check


def grown(x):
    return [x * i for i in range(int((x > 0).sum()))]


def extended(x):
    found = deque([x + 1, x + 2], maxlen=3)
    found.extend(grown(x))
    return found, len(found)


def extended_on_the_left(x):
    found, free = deque([x + 1, x + 2], maxlen=3), deque([x])
    found.extendleft(grown(x))
    free.extendleft(grown(x))
    return found, free, len(free)


def an_empty_one(x):
    found, free = deque(maxlen=2), deque()
    found.extend(grown(x))
    free.extend(deque(grown(x)))
    return found, free


def on_a_path(x):
    found = deque([x], maxlen=2)
    if x.sum() > 0:
        found.extend(grown(x))
    found.append(x * 2)
    return found


def rotated(x):
    found = deque([x, x + 1, x + 2])
    found.rotate(int((x > 0).sum()))
    found.rotate(-int((x > 2).sum()))
    return found, found[0]


def rotated_with_other_kinds(x):
    found, short, none = deque([x, "one", [x]]), deque([x], maxlen=2), deque()
    for each in (found, short, none):
        each.rotate(int((x > 0).sum()))
    return found, short, none


@pytest.mark.parametrize(
    "function",
    [extended, extended_on_the_left, an_empty_one, on_a_path, rotated, rotated_with_other_kinds],
    ids=lambda f: f.__name__,
)
def test_equal_eager(function: Any) -> None:
    check(function, *on_every_path())


def pops_at_an_index(x):
    q = deque([x])
    if x.sum() > 0:
        q.append(x * 2)
    return q.pop(0)


def stacked(x):
    q = deque([x])
    if x.sum() > 0:
        q.append(x * 2)
    return torch.stack(q, dim=0)


@pytest.mark.parametrize("function", [pops_at_an_index, stacked])
def test_what_takes_no_deque_or_index_raises_as_in_eager(function):
    with pytest.raises(TypeError) as eager:
        function(torch.ones(2))
    with pytest.raises(TypeError) as converted:
        to_static(function)(torch.ones(2))
    assert str(converted.value) == str(eager.value)
