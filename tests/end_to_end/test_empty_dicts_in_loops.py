"""Empty dicts that iterations give their first keys: equal to eager, or refused with the reason."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check


def handed_on(x):
    q, r = {}, {}
    while x.sum() < 1.5:
        x = x + 0.2
        for _ in range(int((x > 0).sum())):
            q = r
            r = {}
            q["b"] = x
    return q, r


def handed_on_in_one_loop(x):
    q, r = {}, {}
    for _ in range(int((x > 0).sum())):
        q = r
        r = {}
        q["b"] = x
    return q, r


def set_by_default(x):
    q, r = {"a": x}, {}
    while x.sum() < 1.5:
        x = x + 0.2
        for _ in range(int((x > 0).sum())):
            q = r
            r = {}
            if x.sum() > 0:
                r["a"] = x
            q.setdefault("b", x)
    return q, r


def in_a_list(x):
    p, q = {}, {"a": x}
    box = [p]
    n = 0
    while n < 2 and x.sum() < 9:
        n = n + 1
        for _ in range(int((x > 0).sum())):
            p["a"] = x
            box[0] = q
            q = {"a": x, "b": x}
    return p, q, box


def alone(x):
    p = {}
    n = 0
    while n < 2 and x.sum() < 9:
        n = n + 1
        for _ in range(int((x > 0).sum())):
            p["a"] = x + len(p)
    return p


def made_in_each_iteration(x):
    found = {}
    while x.sum() < 1.5:
        x = x + 0.5
        for _ in range(int((x > 0).sum())):
            found = {}
            found["a"] = x
    return found


@pytest.mark.parametrize("f", [handed_on, handed_on_in_one_loop, set_by_default, in_a_list, alone,
                               made_in_each_iteration])  # fmt: skip
def test_empty_dicts(f):
    check(f, *((torch.tensor(values),) for values in ((0.2, 0.2, 0.2), (0.3, -0.1, -0.1), (2.0, 2.0, 2.0))))
