"""Lists and dicts inside a list that grew: a change of one must not be lost."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from tests.oracle import check

X = torch.tensor([1.0, 2.0, 3.0])
CALLS = [(X,), (-X,), (torch.tensor([1.0, -1.0, 0.5]),)]


def the_last_one(x):
    groups: list[list[Any]] = [[]]
    if x.sum() > 0:
        groups.append([])
    groups[-1].append(x)
    return groups


def each_in_a_loop(x):
    groups: list[list[Any]] = [[]]
    if x.sum() > 0:
        groups.append([])
    for row in groups:
        row.append(x)
    return groups


def a_number_of_a_dict(x):
    rows = [{"n": 0}]
    if x.sum() > 0:
        rows.append({"n": 5})
    rows[-1]["n"] += 1
    return rows


def a_new_key(x):
    rows = [{"n": 0}]
    if x.sum() > 0:
        rows.append({"n": 5})
    rows[0]["m"] = x
    return rows


def after_it_was_put_in(x):
    groups: list[list[Any]] = []
    current: list[Any] = []
    if x.sum() > 0:
        groups.append([])
    groups.append(current)
    current.append(x)
    return groups


def put_in_before_the_branch(x):
    current: list[Any] = []
    groups = [current]
    if x.sum() > 0:
        groups.append([])
    current.append(x)
    return groups, current


def through_another_name(x):
    groups: list[list[Any]] = [[]]
    if x.sum() > 0:
        groups.append([])
    row = groups[0]
    other = row
    other.append(x)
    return groups


def of_a_tuple(x):
    pairs: list[tuple[list[Any], int]] = [([], 0)]
    if x.sum() > 0:
        pairs.append(([], 1))
    pairs[-1][0].append(x)
    return pairs


def deeper(x):
    groups: list[Any] = [[[x]]]
    if x.sum() > 0:
        groups.append([[x]])
    groups[-1][0].append(x)
    return groups


def by_extend(x):
    groups: list[list[Any]] = [[x]]
    if x.sum() > 0:
        groups.append([x])
    groups[0].extend([x, x])
    return groups


def by_a_slice(x):
    groups: list[list[Any]] = [[x], [x]]
    if x.sum() > 0:
        groups.append([x])
    for row in groups[1:]:
        row[0] = x * 2
    return groups


def deleted(x):
    groups: list[list[Any]] = [[x, x]]
    if x.sum() > 0:
        groups.append([x, x])
    del groups[0][0]
    return groups


def added_in_place(x):
    groups: list[list[Any]] = [[x, x]]
    if x.sum() > 0:
        groups.append([x, x])
    groups[0] += [x]
    return groups


def reversed_in_place(x):
    groups: list[list[Any]] = [[x, x * 2]]
    if x.sum() > 0:
        groups.append([x, x * 3])
    groups[0].reverse()
    return groups


def popped(x):
    groups: list[list[Any]] = [[x]]
    row: list[Any] = [x]
    if x.sum() > 0:
        groups.append(row)
    last = groups.pop()
    last.append(x)
    return groups, row


def of_a_loop(x):
    rows = []
    for j in range((x > 0).sum()):
        rows.append([x * j])
    for row in rows:
        row.append(x)
    return rows


def while_it_grows(x):
    rows: list[list[Any]] = [[x]]
    for j in range((x > 0).sum()):
        rows[-1].append(x)
        rows.append([x * j])
    return rows


def of_a_dict_of_lists(x):
    rows: list[Any] = [{"a": [x]}]
    if x.sum() > 0:
        rows.append({"a": [x]})
    rows[-1]["a"].append(x)
    return rows


def of_a_dict_with_a_default(x):
    rows: list[Any] = [defaultdict(int, a=1)]
    if x.sum() > 0:
        rows.append(defaultdict(int, a=2))
    rows[-1]["a"] += 1
    return rows[-1]["a"]


def of_a_deque(x):
    rows: Any = deque([[x]])
    if x.sum() > 0:
        rows.append([x])
    rows[0].append(x)
    return list(rows)


@dataclass
class Bag:
    items: list[Any] = field(default_factory=list)


def of_a_dataclass(x):
    bags = [Bag()]
    if x.sum() > 0:
        bags.append(Bag())
    bags[-1].items.append(x)
    return bags[-1].items


CHANGED = [
    the_last_one, each_in_a_loop, a_number_of_a_dict, a_new_key, after_it_was_put_in, put_in_before_the_branch,
    through_another_name, of_a_tuple, deeper, by_extend, by_a_slice, deleted, added_in_place, reversed_in_place, popped,
    of_a_loop, while_it_grows, of_a_dict_of_lists, of_a_dict_with_a_default, of_a_deque, of_a_dataclass,
]  # fmt: skip


@pytest.mark.parametrize("function", CHANGED, ids=lambda f: f.__name__)
def test_a_change_is_not_lost(function: Any) -> None:
    check(function, *CALLS)


def chunks(x):
    groups: list[list[Any]] = []
    current: list[Any] = []
    for j in range(3):
        current.append(x * j)
        if x[j] > 0:
            groups.append(current)
            current = []
    return sum(len(row) for row in groups), len(current), current


def filled_before(x):
    groups: list[list[Any]] = [[x]]
    if x.sum() > 0:
        row = []
        row.append(x)
        row.append(x * 2)
        groups.append(row)
    return groups[0][0], len(groups), sum(len(row) for row in groups)


def of_one_length(x):
    groups: list[list[Any]] = [[x, x]]
    if x.sum() > 0:
        row = []
        row.append(x)
        row.append(x * 2)
        groups.append(row)
    return groups, len(groups)


def rows_of_a_loop(x):
    rows = []
    for j in range((x > 0).sum()):
        row = [x * j]
        row.append(x)
        rows.append(row)
    return rows


def put_back(x):
    rows = [[x, 1]]
    if x.sum() > 0:
        rows.append([x * 2, 2])
    rows[-1] = [rows[-1][0] + 1, rows[-1][1] + 1]
    return rows


def copied_first(x):
    rows = [[x, 1]]
    if x.sum() > 0:
        rows.append([x * 2, 2])
    row = list(rows[0])
    row[1] += 1
    return rows, row


def records(x):
    rows = []
    for j in range((x > 0).sum()):
        rows.append({"value": x * j, "n": j})
    return rows, [row["value"] for row in rows]


def a_row_put_in_on_a_path_before_a_loop(x):
    groups = [[x]]
    if x.sum() > 0:
        row = []
        row.append(x)
        row.append(x + 1)
        groups.append(row)
    for _ in range(int((x > 0).sum())):
        groups.append([x])
    return groups


@pytest.mark.parametrize(
    "function",
    [
        filled_before, of_one_length, rows_of_a_loop, put_back, copied_first, records,
        a_row_put_in_on_a_path_before_a_loop,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_does_not_change_works(function: Any) -> None:
    check(function, *CALLS)


def same_list_again(x):
    groups: list[list[Any]] = [[x]]
    current = [x]
    for j in range((x > 0).sum()):
        current.append(x * j)
        groups.append(current)
    return [len(row) for row in groups]


def one_path_each(x):
    groups: list[list[Any]] = [[x, x]]
    current = [x, x]
    if x.sum() > 0:
        groups.append(current)
    else:
        current[0] = x * 2
    return groups, current


def changed_after_one_path(x):
    groups: list[list[Any]] = [[x, x]]
    current = [x, x]
    if x.sum() > 0:
        groups.append(current)
    current[0] = x * 2
    return groups, current


def in_an_inner_branch(x):
    groups: list[list[Any]] = [[x, x]]
    current = [x, x]
    if x.sum() > 0:
        if x[0] > 1:
            groups.append(current)
        current[0] = x * 2
    return groups, current


@pytest.mark.parametrize(
    "function", [same_list_again, one_path_each, changed_after_one_path, in_an_inner_branch], ids=lambda f: f.__name__
)
def test_what_was_put_in_on_a_path(function: Any) -> None:
    test_a_change_is_not_lost(function)


def a_row_that_grew(x):
    rows: list[list[Any]] = []
    row: list[Any] = [x]
    if x[0] > 0:
        rows.append([x])
    if x[1] > 0:
        row.append(x * 2)
    rows.append(row)
    return [len(one) for one in rows]


def a_row_that_grew_among_others(x):
    rows: list[Any] = [1]
    row: list[Any] = [x]
    if x[0] > 0:
        rows.append([x])
    if x[1] > 0:
        row.append(x * 2)
    rows.append(row)
    return len(rows), rows[-1][0]


@pytest.mark.parametrize("function", [chunks, a_row_that_grew, a_row_that_grew_among_others], ids=lambda f: f.__name__)
def test_rows_of_other_kinds(function: Any) -> None:
    """A row whose length is known is not carried as one whose length the run knows."""
    test_a_change_is_not_lost(function)
