"""Lists that an iteration of a loop makes, and that several variables know on some paths only."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.oracle import check


def calls() -> list[tuple[Any, ...]]:
    x = torch.tensor([1.0, -2.0, 0.5])
    y = torch.tensor([0.5, 1.0, 2.0])
    return [((x * a).requires_grad_(), (y * b).requires_grad_()) for a in (1, -1) for b in (1, -1)]


def swapped(x, y):
    p, q = [], [x]
    while x.sum() < 3 and len(p) < 3:
        x = x + 1
        if y.sum() > 0:
            p.append(x)
            q = q + [x * 2]
        p, q = q, p
        p.append(x)
    return p, q, p is q


def one_for_another_on_a_path(x, y):
    p, q, r = [], [x], [y, x]
    for _ in range(int((x > 0).sum())):
        if len(q) > 1:
            r.append(y)
            p.append(x)
        else:
            r = q
            r = [t * 2 for t in r]
            q = [t * 2 for t in p]
        p = q if y.sum() > 0 else q + [x]
    p.append(y)
    return p, q, r, p is q, q is r


def grow(items, t):
    if t.sum() > 0:
        items.append(t)
    else:
        items = items + [t]
    return items


def by_a_function(x, y):
    p, q, r = [], [x], [y, x]
    count = 0
    while count < 2 and x.sum() < 3:
        count = count + 1
        p = grow(r, x)
        if y.sum() > 0:
            r = r + [y * 2]
            p.append(y)
        else:
            q.append(x)
        for _ in range(int((x > 0).sum())):
            p, r = r, p
    r[0] = x * 3
    return p, q, r, p is r, q is r


def left_early(x, y):
    p, q, r = [x], [x], [y, x]
    box = [p]
    if y.sum() > 0:
        q.append(y)
    else:
        r = box[0]
        for _ in range(int((x > 0).sum())):
            for _ in range(int((x > 0).sum())):
                q = [t * 2 for t in q]
                if x.sum() > 0:
                    return r, p
            box[0] = q
    return p, r, p is q, q is r, box[0] is q


def dicts(x, y):
    p, q = {"a": x}, {"a": y}
    for _ in range(int((x > 0).sum())):
        p = {name: value * 2 for name, value in q.items()}
        if y.sum() > 0:
            q = p
        p["a"] = p["a"] + 1
    q["a"] = q["a"] * 3
    return p, q, p is q


@pytest.mark.parametrize(
    "function", [swapped, one_for_another_on_a_path, by_a_function, left_early, dicts], ids=lambda f: f.__name__)
def test_as_eager(function: Any) -> None:
    check(function, *calls())
