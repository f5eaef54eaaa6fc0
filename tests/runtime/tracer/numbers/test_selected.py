"""What paths say of the number that tells which of several a value is."""

from __future__ import annotations

import torch

from tests.oracle import check


def _switches(function, *values):
    static = check(function, *([torch.tensor(value)] for value in values))
    return sum(op.name == "switch" for op in static.programs[0].block.walk())


def asked_once(x):
    v = x if x > 0 else None
    return x if v is None else v * 2 + v


def asked_by_a_bool(x):
    v = x if x > 0 else None
    known = v is not None
    if not (not known):
        return v * 2
    return x - 1


def asked_of_one_of_three(x):
    v = None
    if x > 0:
        v = x
    if x > 5:
        v = (x, x)
    if isinstance(v, tuple):
        return v[0] + v[1]
    return x if v is None else x + 1


def test_a_path_that_says_which() -> None:
    assert _switches(asked_once, 1.0, -1.0) <= 1
    assert _switches(asked_by_a_bool, 1.0, -1.0) <= 1
    _switches(asked_of_one_of_three, 1.0, -1.0, 9.0)


def asks_the_other_one(x):
    v = x if x > 0 else None
    return x if v is not None else v + 1


def test_the_other_path_still_raises() -> None:
    check(asks_the_other_one, [torch.tensor(1.0)], [torch.tensor(-1.0)])
