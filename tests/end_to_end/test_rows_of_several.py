"""Lists made of rows that are one of several: ``row + [q]`` and its like in loops and branches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.oracle import check


def calls() -> list[tuple[Any, ...]]:
    base = torch.tensor([1.0, 1.0, 0.5])
    return [((base * a).requires_grad_(), base * b) for a in (-1.0, 0.1, 1.0) for b in (-1.0, 0.1)]


def rows_made_in_branches(x, y):
    g = [[x]]
    if x[0] > 0:
        cur = []
        g.append(cur)
        cur.append(x + 1)
        if y[0] > 0:
            g = [[y]]
    return g


def twice_in_an_iteration(x, y):
    g = rows_made_in_branches(x, y)
    n = 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        g = [row + [y] for row in g]
        g = [row + [y] for row in g]
    return g


def once_in_an_iteration(x, y):
    g = rows_made_in_branches(x, y)
    n = 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        g = [row + [y] for row in g]
    return g


def in_a_loop_in_a_branch(x, y):
    g, n = rows_made_in_branches(x, y), 0
    if y[0] < 0:
        while n < 2 and x.sum() < 1.5:
            n = n + 1
            g = [row + [y] for row in g]
            g = [row + [y] for row in g]
            for row in g:
                x = x + sum(row) * 0.1
    return g, x


def before_a_return_in_a_branch(x, y):
    g, n = [[x]], 0
    if x.sum() > 0:
        g.append([y, y])
        if (y > 0).any():
            return g, n
    for _ in range(int((x > -2).sum())):
        g = [row + [y] for row in g]
        n = n + sum(len(row) for row in g)
    return g, n


def a_row_that_only_one_path_has(x, y):
    g = [[x]]
    if y.sum() < 1.5:
        cur = [y]
    else:
        g[0] = g[0] + [x]
        g.append([x, x])
        cur = []
    g.append(cur)
    for _ in range(int((x > 0).sum())):
        g.append(cur)
    return g


def repeated(x, y):
    g, n = rows_made_in_branches(x, y), 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        g = [row * 2 for row in g]
    return g


def sliced(x, y):
    g, n = rows_made_in_branches(x, y), 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        g = [(row + [y])[1:] for row in g]
    return g


def copied(x, y):
    g, n = rows_made_in_branches(x, y), 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        g = [row.copy() for row in g]
        g = [list(row) for row in g]
        g[-1].append(y)
    return g


def comprehensions(x, y):
    g, n = rows_made_in_branches(x, y), 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        g = [[t * 0.5 for t in row] for row in g]
        g = [[*row, y] for row in g]
    return g


def dicts(x, y):
    g, n = [{"t": x}], 0
    if x[0] > 0:
        g.append({"t": x + 1})
        if y[0] > 0:
            g = [{"t": y, "u": y}]
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        g = [row | {"n": y} for row in g]
        g = [{**row, "m": n} for row in g]
    return g


def in_nested_loops(x, y):
    g, n = rows_made_in_branches(x, y), 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        for _ in range(int((y > 0).sum())):
            g = [row + [y] for row in g]
        g = [row + [x] for row in g]
    return g


FUNCTIONS = [
    twice_in_an_iteration, once_in_an_iteration, in_a_loop_in_a_branch, before_a_return_in_a_branch,
    a_row_that_only_one_path_has, repeated, sliced, copied, comprehensions, dicts, in_nested_loops,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_equal_eager(function):
    check(function, *calls())


def test_a_list_of_numpy_numbers_beside_a_number() -> None:
    """A row that is a number has no array: there is nothing to make one of."""

    def f(x: Any) -> Any:
        log: list[Any] = []
        if x.sum() < 0:
            log.append(list(x.detach().numpy() * 2))
        for i in range(int(abs(x[0]))):
            log.append(i * 0.5)
        return log

    check(f, (torch.tensor([2.0, 1.0]),), (torch.tensor([-3.0, 1.0]),), (torch.tensor([0.0, -1.0]),))
