"""Lists and dicts that nested branches and loops change and give other values: who else refers to them is known.

What the converter keeps of the enclosing constructs does not count as another variable; a real one does.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.oracle import check


def calls() -> list[tuple[Any, ...]]:
    x = torch.tensor([1.0, -2.0, 3.0])
    return [((x * sign).requires_grad_(), torch.tensor(n)) for sign in (1, -1) for n in (0, 1, 3)]


def a_loop_in_a_branch(x, n):
    out = [x]
    if x.sum() > 0:
        for _ in range(n):
            if len(out) > 2:
                out = out[:1]
            else:
                out.append(x * 2)
    out.append(x)
    return out


def a_branch_in_loops(x, n):
    out = []
    for _ in range(n):
        while len(out) < 4:
            if x[0] > 0:
                out.append(x)
            else:
                out = [t * 0.5 for t in out]
                out.append(x * 3)
            out.append(x + 1)
        out = out[1:]
    return out, len(out)


def a_dict_in_loops(x, n):
    d = {"p": x, "n": 0}
    for _ in range(n):
        if x.mean() > 0:
            d = {**d, "p": d["p"] * 2}
        for _ in range(n):
            d["n"] += 1
    d["n"] += 10
    return d


def after_what_was_raised_and_caught(x, n):
    out = [x]

    def checked(k):
        if k > 0:
            raise ValueError("too large")
        return k

    for _ in range(n):
        try:
            checked(1)
        except ValueError:
            x = x + 1
        if x[0] > 0:
            out = list(reversed(out))
        out.append(x)
    return out


def a_raise_before(x, n):
    out = [x]
    if x[0] > 100:
        raise ValueError("no")
    for _ in range(n):
        out = out + [x]
    out.append(x)
    return out


def another_variable_in_a_branch(x, n):
    out = [x]
    other = out
    if x.sum() > 0:
        if x[0] > 0:
            out = [x * 2]
        out.append(x * 3)
    return out, other, out is other


def items_of_an_iteration_in_vain(x, n):
    rows = [[x]]
    outer, inner = x * 1, x * 1
    while outer.sum() < 2:
        outer = outer + 1
        rows[-1] = [x * 2]
        while inner.sum() < 2:
            inner = inner + 1
            rows[-1] = [x * 3]
            for row in rows:
                x = x + row[0]
            rows = [[x]]
    for _ in range(n):
        rows.append([x])
    while outer.sum() < 4:
        outer = outer + 1
        rows.append([outer])
    return rows, x


def rows_made_anew_in_loops(x, n):
    rows = [[x]]
    outer, inner = x * 1, x * 1
    while outer.sum() < 2:
        outer = outer + 1
        rows[-1] = [x * 2]
        while inner.sum() < 2:
            inner = inner + 1
            rows[-1] = [x * 3]
            rows = [[item * 0.5 for item in row] for row in rows]
    while outer.sum() < 4:
        outer = outer + 1
        rows.append([outer])
    return rows, x


@pytest.mark.parametrize(
    "function",
    [
        a_loop_in_a_branch, a_branch_in_loops, a_dict_in_loops, after_what_was_raised_and_caught, a_raise_before,
        another_variable_in_a_branch, items_of_an_iteration_in_vain, rows_made_anew_in_loops,
    ],
)  # fmt: skip
def test_equal_eager(function):
    check(function, *calls())


def another_variable(x, n):
    out = []
    other = out
    for _ in range(n):
        out.append(x)
        if len(out) > 1:
            out = out[:1]
    return out, other


def another_variable_of_the_iteration_before(x, n):
    out, other = [x], [x]
    for _ in range(n):
        if x[0] > 0:
            out = [t * 2 for t in out]
        out.append(x)
        other = out
    return out, other


def an_item_of_another_list(x, n):
    out = []
    held = [out]
    if x.sum() > 0:
        for _ in range(n):
            if len(out) > 1:
                out = [x]
            out.append(x)
    return out, held


@pytest.mark.parametrize(
    "function", [another_variable, another_variable_of_the_iteration_before, an_item_of_another_list]
)
def test_what_another_variable_shows(function):
    check(function, *calls())
