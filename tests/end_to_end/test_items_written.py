"""In-place writes to tensors that are, or were, items of a list whose length is only known while the Program runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check


@dataclass
class Row:
    value: torch.Tensor


def calls() -> list[tuple[Any, ...]]:
    return [((torch.tensor([1.0, -2.0, 3.0]) * s).requires_grad_(), torch.tensor(2)) for s in (1, -1, 0.1)]


def after_the_list(x, n):
    a, b = x * 0.5, torch.tanh(x)
    total = sum([t for t in (a, b) if t.sum() > -0.2])
    a += 1
    b *= a
    return total, a, b


def in_a_called_function(x, n):
    def kept(*ts):
        return len([t for t in ts if t.sum() > 0])

    a = x * 2
    count = kept(a, a)
    a.add_(count)
    return a


def on_a_path(x, n):
    a = x * 2
    if x.sum() > 0:
        c = torch.stack([t for t in (a, a + 1) if t.sum() > -1e6])
    else:
        a -= 3
        c = a * 2
    return a, c


def every_iteration(x, n):
    a = x * 2
    total = torch.zeros(())
    while total < 5:
        total = total + len([t for t in (a, -a) if t.sum() > -2]) + 1
        a += 1
    return a, total


def a_list_that_goes_out_of_use(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(a)
    c = torch.stack(rows)
    rows = None
    a += 1
    return a, c, rows


@pytest.mark.parametrize(
    "function", [after_the_list, in_a_called_function, on_a_path, every_iteration, a_list_that_goes_out_of_use]
)
def test_a_list_that_is_gone_does_not_matter(function):
    check(function, *calls())


def the_list_is_used(x, n):
    a = x * 2
    rows = [t for t in (a, x) if t.sum() > 0]
    a += 1
    return rows


def it_is_in_a_list(x, n):
    a = x * 2
    held = [[t for t in (a, x) if t.sum() > 0]]
    a += 1
    return held


def an_item_is_used(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(a)
    item = rows.pop()
    del rows
    a += 1
    return item


def an_item_is_written(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(a)
    item = rows[0]
    del rows
    item += 1
    return a


def two_items(x, n):
    rows = []
    for _ in range(n):
        rows.append(x * 2)
    one, other = rows[0], rows[-1]
    del rows
    one += 1
    return other


def through_what_it_is_on_a_path(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(a)
    b = a if x.sum() > 0 else x * 3
    b += 1
    return rows[0]


def what_is_an_item_on_a_path(x, n):
    a = x * 2
    b = a if x.sum() > 0 else x * 3
    rows = []
    for _ in range(n):
        rows.append(b)
    a += 1
    return rows[0]


def a_part_of_an_item(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(Row(a))
    a += 1
    return rows[0].value


def a_list_made_of_the_list(x, n):
    a = x * 2
    rows = []
    for _ in range(n):
        rows.append(a)
    more = rows + [x]
    del rows
    a += 1
    return more


def a_list_of_a_path(x, n):
    a = x * 2
    rows = [t for t in (a, x) if t.sum() > 0]
    if x.mean() > 0:
        other = rows
    else:
        other = []
    del rows
    a += 1
    return other


def a_list_of_the_iteration_before(x, n):
    a = x * 2
    rows = [a]
    total = torch.zeros(())
    for _ in range(n):
        a += 1
        total = total + sum(rows).sum()
        rows = [t for t in (a, x) if t.sum() > -1e6]
    return total


def what_an_iteration_appended(x, n):
    b = x * 1
    rows = []
    for _ in range(n):
        b = b * 2
        rows.append(b)
    b -= 0.5
    return rows[-1]


def what_a_path_appended(x, n):
    b = x * 1
    rows = []
    for _ in range(n):
        rows.append(x)
    if x.sum() > 0:
        b = x * 2
        rows.append(b)
    b -= 0.5
    return rows[-1]


def what_the_iteration_before_appended(x, n):
    b = x * 1
    rows = []
    for _ in range(n):
        b -= 0.5
        b = b * 2
        rows.append(b)
    return rows[0]


def what_a_called_function_appended_on_a_path(x, n):
    rows = []

    def kept(t):
        rows.append(t)
        return t

    b = x * 1
    for _ in range(n):
        if x.sum() > 0:
            b = kept(b * 2)
    b += 1
    return rows


def what_was_detached_and_appended(x, n):
    h = x * 1
    rows = []
    for _ in range(n):
        h = h.detach()
        h += 1
        rows.append(h)
    return rows


def what_was_detached_and_written_with_history(x, n):
    h = x.detach() * 1
    rows = []
    for _ in range(n):
        g = h.detach()
        g += x
        rows.append(g)
    return rows


def what_the_appended_is_on_a_path(x, n):
    h = x * 1
    rows = []
    for _ in range(n):
        g = h if x.sum() > 0 else x * 2
        rows.append(g)
        h += 1
    return rows


def what_an_iteration_before_appended_may_be(x, n):
    h = x * 1
    rows = []
    g = h
    for _ in range(n):
        rows.append(g)
        g = h if x.sum() > 0 else x * 2
    h += 1
    return rows


@pytest.mark.parametrize(
    "function",
    [
        what_was_detached_and_appended, what_was_detached_and_written_with_history, what_the_appended_is_on_a_path,
        what_an_iteration_before_appended_may_be,
        what_an_iteration_appended, what_a_path_appended, what_the_iteration_before_appended,
        what_a_called_function_appended_on_a_path,
        the_list_is_used, it_is_in_a_list, an_item_is_used, an_item_is_written, two_items,
        through_what_it_is_on_a_path, what_is_an_item_on_a_path, a_part_of_an_item, a_list_made_of_the_list,
        a_list_of_a_path, a_list_of_the_iteration_before,
    ],
)  # fmt: skip
def test_a_write_that_a_list_or_an_item_would_show_is_refused(function):
    with pytest.raises(TraceError, match="an item of a list that grows") as caught:
        to_static(function)(*calls()[0])
    assert caught.value.code == "D2S222"


def a_list_of_another_iteration(x, n):
    a = x * 2
    rows = []
    total = torch.zeros(())
    for _ in range(n):
        rows = [t for t in (a, x) if t.sum() > -1e6]
        total = total + sum(rows).sum()
        a = a + 1
        a += 1
    return total


def test_what_an_iteration_makes_anew_may_be_written():
    check(a_list_of_another_iteration, *calls())
