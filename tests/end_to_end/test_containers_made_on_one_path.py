"""Containers that one path makes and fills, inside others: after the paths they hold what that path left in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check


def list_in_a_list(x: torch.Tensor, y: torch.Tensor) -> Any:
    if x.sum() > 0:
        g = [[x, y]]
        if y.sum() > 0:
            return g
    else:
        h = []
        h.append(x * 0.5)
        g = [h]
    return g


def older_name(x: torch.Tensor, y: torch.Tensor) -> Any:
    g = [[x]]
    if x.sum() > 0:
        g = [[x, y]]
        if y.sum() > 0:
            return g
    else:
        h = []
        h.append(x * 0.5)
        g = [h]
    return len(g[0]), g[0]


def comprehension(x: torch.Tensor, y: torch.Tensor) -> Any:
    g = [[x]]
    if x.sum() > 0:
        g = [row + [y] for row in g]
        if y.sum() > 0:
            return g
    else:
        g = [[t * 0.5 for t in row] for row in g]
    return g


def list_in_a_dict(x: torch.Tensor, y: torch.Tensor) -> Any:
    if x.sum() > 0:
        g = {"a": [x, y]}
        if y.sum() > 0:
            return g
    else:
        g = {"a": []}
        g["a"].append(x)
    return g


def dict_in_a_list(x: torch.Tensor, y: torch.Tensor) -> Any:
    if x.sum() > 0:
        g = [{"a": x}]
        if y.sum() > 0:
            return g
    else:
        d: dict[str, torch.Tensor] = {}
        d["a"] = y * 2
        g = [d]
    g[0]["b"] = x
    return g


def two_levels(x: torch.Tensor, y: torch.Tensor) -> Any:
    if x.sum() > 0:
        g = [([x], {"k": [y]})]
        if y.sum() > 0:
            return g
    else:
        a: list[torch.Tensor] = []
        b: list[torch.Tensor] = []
        g = [(a, {"k": b})]
        a.append(x)
        b.append(x)
        b.append(y)
    return g, g[0][1]["k"][-1]


def set_and_numbers(x: torch.Tensor, y: torch.Tensor) -> Any:
    if x.sum() > 0:
        g = [[1, 2], {3}]
        if y.sum() > 0:
            return g
    else:
        s: set[int] = set()
        n: list[int] = []
        g = [n, s]
        s.add(4)
        n.append(5)
    return g


def rows_that_a_loop_adds(x: torch.Tensor, y: torch.Tensor) -> Any:
    g = [[x]]
    if x.sum() > 0:
        g.append([x * 0, x])
    for _ in range(int((y > 0).sum())):
        g[0] = g[0] + [y]
        x = x * 0
        if x.sum() > 0:
            g.append([x + 1, x])
    return g


def rows_of_two_lengths(x: torch.Tensor, y: torch.Tensor) -> Any:
    g = [[x]]
    g.append([y * 2, x])
    if x.sum() > 0:
        g = [[y * 2]]
    if y.sum() > 0:
        g.append([y * 2, x])
        g[-1] = [x + 1]
    else:
        return x, y
    for _ in range(int((y > -1).sum())):
        cur = []
        g.append(cur)
    return g, y


def rows_put_together(x: torch.Tensor, y: torch.Tensor) -> Any:
    p, q, r = x * 0.5, y * 2, torch.ones(3)
    g = [[p]]
    g.append([q * 2])
    if r.sum() > 0:
        for _ in range(2):
            g[-1] = [q]
    if (p > 0).any():
        n = 0
        while n < 2 and (p > 0).any():
            n = n + 1
            cur = []
            cur.append(p + 1)
            g.append(cur)
    if y.sum() > 1:
        if p.sum() > 0:
            g[0] = g[0] + [q * 2]
        else:
            g.append([p + 1])
    else:
        for _ in range(int((r > 0).sum())):
            g = [row + [q * 2] for row in g]
            g.append([p, p])
    return g


def rows_changed_in_two_loops(x: torch.Tensor, y: torch.Tensor) -> Any:
    q, g = y * 2, [[x]]
    if (y > 0).any():
        g.append([q, q])
    for _ in range(int((x > 0).sum())):
        for _ in range(int((y > 0).sum())):
            q = q + g[-1][0]
            g[0] = g[0] + [x]
            g.append([q])
    return g


PROGRAMS = (
    list_in_a_list, older_name, comprehension, list_in_a_dict, dict_in_a_list, two_levels, set_and_numbers,
    rows_that_a_loop_adds, rows_of_two_lengths, rows_put_together,
    rows_changed_in_two_loops,
)  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("gradients", [False, True])
def test_holds_what_its_path_left(program: Callable[..., Any], gradients: bool) -> None:
    calls = [
        tuple(torch.tensor(one).requires_grad_(gradients) for one in call)
        for call in (([1.0, 2.0], [0.5, 1.0]), ([1.0, 2.0], [-0.5, -1.0]), ([-1.0, -2.0], [0.5, -1.0]))
    ]
    check(program, *calls, none_is_zero=True)
