"""Sizes that may be 0: a loop over rows that has none, and rows that are read where the code has asked for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import InputSpec
from tests.oracle import check


def carried(x):
    h = torch.zeros(3)
    for row in x:
        h = h * 0.5 + row
    return h


def collected(x):
    h, rows = torch.zeros(3), []
    for place in range(len(x)):
        h = torch.tanh(h + x[place])
        rows.append(h)
    return torch.stack(rows) if x.shape[0] > 0 else x, h


def nested(x):
    total = torch.zeros(())
    for row in x:
        for value in row:
            total = total + value
    return total


def counted(x):
    place = 0
    while place < x.shape[0]:
        x = x * x[place].sum()
        place += 1
    return x, place


def best(x):
    found = None
    for place in range(len(x)):
        if found is None or x[place].sum() > found.sum():
            found = x[place]
    return found


def asked(x):
    return x[0] if len(x) else x.sum(0)


def asked_for_none(x):
    if x.shape[0] == 0:
        return x.sum(0)
    return x[0] + x[-1]


def asked_for_not(x):
    if not x.shape[0]:
        return x.sum(0)
    return x[0]


def asked_for_other(x):
    y = x.sum(0)
    if x.shape[0] != 0:
        y = y + x[0]
    return y


def asked_for_two(x):
    if x.shape[0] < 2:
        return x * 2
    return x[0] + x[1]


def asked_for_many(x):
    if 2 <= x.shape[0]:
        return x[1]
    return x.sum(0)


@pytest.mark.parametrize("function", [
    carried, collected, nested, counted, best, asked, asked_for_none, asked_for_not, asked_for_other, asked_for_two,
    asked_for_many,
])  # fmt: skip
def test_any_number_of_rows(function: Any, tmp_path: Path) -> None:
    dy2static.save(function, tmp_path / "saved", [InputSpec([None, 3], "float32", "x")])
    loaded = dy2static.load(tmp_path / "saved")
    assert not loaded.program().assumes
    rows = [1 + torch.arange(count * 3.0).reshape(count, 3) for count in range(4)]
    calls = [((sign * one).requires_grad_(),) for one in rows for sign in (1, -1)]
    check(function, *calls, static=loaded, paths=("program",), tolerance=1e-6, none_is_zero=True)


def test_what_is_not_asked_for_is_needed(tmp_path: Path) -> None:
    """Eager raises where there are none."""
    def f(x):
        if x.shape[0] >= 1:
            return x[1]
        return x.sum(0)

    dy2static.save(f, tmp_path / "saved", [InputSpec([None, 3], "float32", "x")])
    loaded = dy2static.load(tmp_path / "saved")
    assert torch.equal(loaded(torch.ones(2, 3)), torch.ones(3))
    with pytest.raises(dy2static.errors.SignatureError, match="D2S308"):
        loaded(torch.ones(1, 3))
