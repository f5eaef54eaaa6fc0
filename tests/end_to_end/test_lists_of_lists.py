"""Lists whose length only the run knows, in a list whose length only the run knows: read, differentiated, returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check, same

X = torch.tensor([1.0, 2.0, 3.0, -1.0, 5.0])


def calls() -> list[tuple[Any, ...]]:
    values = (X, -X, X.abs(), X * 0)
    return [(x.clone(),) for x in values] + [(x.clone().requires_grad_(),) for x in values]


def rows(x):
    found = []
    for i in range(int((x > 0).sum())):
        row = []
        for j in range(i):
            row.append(x * j)
        found.append(row)
    return found


def rows_in_tuples(x):
    found = []
    for i in range(int((x > 0).sum())):
        row = []
        for j in range(i):
            row.append((x * j, {"a": j, "b": [x]}))
        found.append((row, "k"))
    return found


def three_levels(x):
    found = []
    for i in range(int((x > 0).sum())):
        row = []
        for j in range(i):
            inner = []
            for k in range(j):
                inner.append(x + k)
            row.append(inner)
        found.append(row)
    return found


def the_sum_of_all(x):
    total = x
    for row in rows(x):
        for t in row:
            total = total + t * t
    return total


def a_row_as_a_tensor(x):
    total = x
    for row in rows(x):
        if len(row) > 1:
            total = total + torch.stack(row).prod(0)
    return total, len(rows(x))


FUNCTIONS = [rows, rows_in_tuples, three_levels, the_sum_of_all, a_row_as_a_tensor]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_equal_eager(function: Any) -> None:
    check(function, *calls(), tolerance=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_saved_and_loaded(function: Any, tmp_path: Path) -> None:
    path = dy2static.save(dy2static.to_static(function), tmp_path / "f", input_spec=[dy2static.InputSpec([5])])
    loaded = dy2static.load(path)
    for x in (X, -X, X.abs()):
        same(loaded(x), function(x), tolerance=1e-6)


def a_row_gets_longer(x):
    found = [[x, x + 1]]
    for i in range(int((x > 0).sum())):
        found.append([x * i, x])
    found[0] = found[0] + [x * 3]
    return found, len(found[0]), found[-1][1]


def rows_of_two_lengths(x):
    found = [[x]]
    for i in range(int((x > 0).sum())):
        found.append([x * i, x])
        found.append([x - i])
    return found, [len(row) for row in found]


def an_empty_row(x):
    found = [[]]
    for _ in range(int((x > 0).sum())):
        found.append([])
    found[-1] = found[-1] + [x]
    return found, found[-1][0]


def in_tuples_of_rows(x):
    found = [(1, [x])]
    for i in range(int((x > 0).sum())):
        found.append((i, [x]))
    found[-1] = (7, [x, x * 2])
    return found


def of_pairs(x):
    found = [[(x, 1)]]
    for i in range(int((x > 0).sum())):
        found.append([(x * i, i)])
    found[0] = found[0] + [(x, 2), (x, 3)]
    return found, [n for row in found for _, n in row]


def of_several_kinds(x):
    found = [[x], 1]
    for i in range(int((x > 0).sum())):
        found.append([x * i])
        found.append(i)
    found[0] = [x, x + 1]
    return found


LONGER = [a_row_gets_longer, rows_of_two_lengths, an_empty_row, in_tuples_of_rows, of_pairs, of_several_kinds]


@pytest.mark.parametrize("function", LONGER, ids=lambda f: f.__name__)
def test_rows_that_get_longer(function: Any) -> None:
    """Rows whose number of items was known until one was put in that has another."""
    check(function, *calls(), tolerance=1e-6)


def a_written_item(x):
    found = [[x + 1]]
    for i in range(int((x > 0).sum())):
        found.append([x * i])
    found[0] = found[0] + [x * 3]
    t = found[-1][0]
    t.add_(1)
    return found


def test_a_write_is_not_lost() -> None:
    try:
        check(a_written_item, *calls())
    except dy2static.TraceError as error:
        assert error.code == "D2S222", error
