"""Lists and dicts that are one object on some paths only: a change by one name is seen by the other, as in eager."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.oracle import check

X = [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),)]
CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def one_of_two(x):
    a, b = [1], [2]
    c = a if x.sum() > 0 else b
    c.append(3)
    return a, b, c


@case
def one_of_two_the_original_is_changed(x):
    a, b = [x], [x + 1, x]
    c = a if x.sum() > 0 else b
    a.append(x * 2)
    b.append(x * 3)
    return a, b, c, len(c)


@case
def both_are_changed_in_turn(x):
    a, b = [1], [2]
    c = a if x.sum() > 0 else b
    c.append(3)
    a.append(4)
    c.append(5)
    b.append(6)
    return a, b, c


@case
def kept_on_one_path(x):
    a = [1]
    if x.sum() > 0:
        c = a
    else:
        c = [x]
    c.append(3)
    return a


@case
def replaced_on_one_path(x):
    a = [1]
    b = a
    if x.sum() > 0:
        a = [2]
    b.append(3)
    a.append(4)
    return a, b


@case
def set_item(x):
    a, b = [x, x + 1], [x * 2, x * 3]
    c = a if x.sum() > 0 else b
    c[0] = x * 5
    a[1] = a[1] + c[1]
    b[-1] = x
    return a[0] + c[1], b, c


@case
def delete_and_pop(x):
    a, b = [1, 2, 3], [4, 5, 6]
    c = a if x.sum() > 0 else b
    del c[0]
    last = c.pop()
    first = a.pop(0)
    return a, b, c, last, first


@case
def insert_and_slices(x):
    a, b = [1.0, 2.0], [3.0, 4.0]
    c = a if x.sum() > 0 else b
    c.insert(0, 9.0)
    c[1:2] = [7.0, 8.0]
    return a, b, c


@case
def extended(x):
    a, b = [x], [x + 1]
    c = a if x.sum() > 0 else b
    c.extend([x * 2, x * 3])
    c += [x * 4]
    a += [x]
    return a, b, c


@case
def cleared(x):
    a, b = [x], [x + 1]
    c = a if x.sum() > 0 else b
    c.clear()
    c.append(x)
    return a, b, c


@case
def sorted_and_reversed(x):
    a, b = [3, 1, 2], [6, 5, 4]
    c = a if x.sum() > 0 else b
    a.sort()
    c.reverse()
    return a, b, c


@case
def dicts(x):
    a, b = {"v": x, "n": 1}, {"v": x * 2, "n": 2}
    c = a if x.sum() > 0 else b
    c["v"] = c["v"] + 1
    c.update(n=7)
    a["n"] += 1
    return a, b, c


@case
def dicts_of_lists(x):
    d = {"a": [x], "b": [x + 1]}
    rows = d["a"] if x.sum() > 0 else d["b"]
    rows.append(x * 2)
    d["b"].append(x * 3)
    return d, rows


@case
def nested(x):
    inner = [x]
    outer = [inner]
    c = outer if x.sum() > 0 else [[x + 5]]
    c[0][0] = x * 2
    inner[0] = inner[0] + 1
    return inner, outer, c


@case
def nested_replaced(x):
    inner = [x]
    outer = [inner]
    c = outer if x.sum() > 0 else [[x + 5]]
    new = [x * 7]
    c[0] = new
    new[0] = x * 8
    inner[0] = x * 9
    return inner, outer, c, new


@case
def nested_growing(x):
    inner = [x]
    outer = [inner]
    c = outer if x.sum() > 0 else [[x + 5]]
    c[0].append(x * 2)
    inner.append(x)
    return inner, outer, c


@case
def nested_without_a_name(x):
    outer = [[x]]
    c = outer if x.sum() > 0 else [[x + 5]]
    c[0].append(x * 2)
    outer[0].append(x)
    return outer, c


@case
def changed_where_it_is_made(x):
    if x.sum() > 0:
        c = [x + 1]
        d = c
        c.append(x * 2)
    else:
        c, d = [x], [x]
    d.append(x * 3)
    return c, d


@dataclasses.dataclass
class Bag:
    items: list
    best: list | None = None


@case
def attribute(x):
    bag = Bag([1])
    mine = bag.items
    if x.sum() > 0:
        bag.items = [5]
    mine.append(2)
    bag.items.append(3)
    return bag.items, mine


@case
def attribute_gets_one_of_two(x):
    a, b = [x], [x + 1]
    bag = Bag([])
    bag.best = a if x.sum() > 0 else b
    bag.best.append(x)
    a.append(x * 2)
    return a, b, bag.best


@case
def made_in_a_branch(x):
    if x.sum() > 0:
        a = [1]
        b = a
    else:
        a, b = [1], [1]
    a.append(3)
    b.append(4)
    return a, b


@case
def made_in_a_branch_and_stored(x):
    kept = [[0.0]]
    if x.sum() > 0:
        a = [1.0]
        kept[0] = a
    else:
        a = [2.0]
    a.append(3.0)
    kept[0].append(4.0)
    return a, kept


@case
def three_names(x):
    if x.sum() > 0:
        a = [x]
        b = c = a
    else:
        a, b = [x], [x + 1]
        c = b
    a.append(x * 2)
    b.append(x * 3)
    c.append(x * 4)
    return a, b, c


@case
def chosen_twice(x):
    a, b, c = [1], [2], [3]
    d = a if x.sum() > 0 else b
    e = d if x[0] > 0.5 else c
    e.append(4)
    d.append(5)
    a.append(6)
    return a, b, c, d, e


@case
def chosen_inside(x):
    a, b = [1], [2]
    if x.sum() > 0:
        c = a if x[0] > 5 else b
        c.append(7)
    else:
        c = a
    c.append(8)
    b.append(9)
    return a, b, c


@case
def changed_on_a_path(x):
    a, b = [1], [2]
    c = a if x.sum() > 0 else b
    if x[0] > 0:
        c.append(3)
    else:
        a.append(4)
    return a, b, c


@case
def changed_in_a_loop(x):
    a, b = [x], [x * 2]
    c = a if x.sum() > 0 else b
    for i in range(int(x.abs().sum())):
        c.append(x + i)
        a.append(x - i)
    return a, b, c


@case
def chosen_in_a_loop(x):
    a, b = [0], [1]
    for i in range(int(x.abs().sum())):
        c = a if x.sum() > i else b
        c.append(i)
    return a, b


@case
def replaced_in_a_loop_by_its_only_name(x):
    d = {"p": x, "n": 0}
    out = [x]
    n = int(x.sum() > 0)
    while n < 1:
        n = n + 1
        d = {**d, "p": d["p"] * 2}
        out.append(x)
        out = out[:2]
    d["n"] += 1
    out.append(x * 2)
    return d, out


@case
def replaced_on_a_path_of_a_loop(x):
    out = [x]
    for _ in range(int(x.abs().sum())):
        if x[0] > 0:
            out.append(x)
        if len(out) > 1:
            out = out[:2]
    out.append(x * 2)
    return out


@case
def no_path_taken(x):
    a = [1]
    b = a
    if x.sum() > 100:
        a = [2]
    if x.sum() > 200:
        b = [5]
    b.append(3)
    a.append(4)
    return a, b


@case
def identity(x):
    a, b = [1], [2]
    c = a if x.sum() > 0 else b
    d = c
    if x[1] > 1:
        d = a
    return c is a, c is b, c is not a, d is c, d is a, a is b


@case
def with_gradients(x):
    a, b = [x * 2], [x * 3]
    c = a if x.sum() > 0 else b
    c.append(c[0] * x)
    c[0] = c[0] + 1
    return sum(a), sum(b), sum(c)


@case
def a_finally_changes_what_was_returned(x):
    log = []
    try:
        if x.sum() > 0:
            return x, log
        x = x + 1
    finally:
        log.append(1)
    log.append(2)
    return x, log


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_shared(function):
    check(function, *X)


def changed_and_replaced_in_a_loop(x):
    a = []
    b = a
    for i in range(int(x.abs().sum())):
        b.append(i)
        b = b + [0]
    return a, b


def replaced_in_a_loop_while_chosen(x):
    a, b = [0], [1]
    c = a if x.sum() > 0 else b
    for _ in range(int(x.abs().sum())):
        c.append(1)
        c = c + [5]
    return a, b, c


def known_by_another_name(x):
    a = [0]
    items = a
    for i in range(int(x.abs().sum())):
        items = items + [i]
    items.append(7)
    return a, items


def given_another_name_in_a_loop(x):
    a, b = [0], [1]
    for _ in range(int(x.abs().sum())):
        b = a
    b.append(5)
    return a, b


def changed_before_it_is_given_away(x):
    a, b = [0], [1]
    for _ in range(int(x.abs().sum())):
        b.append(5)
        b = a
    return a, b


def chosen_in_a_loop_and_changed_after(x):
    a, b, c = [0], [1], [9]
    for i in range(int(x.abs().sum())):
        c = a if x.sum() > i else b
    c.append(7)
    return a, b, c


def two_names_of_what_an_iteration_makes(x):
    a, b = [0], [1]
    for i in range(int(x.abs().sum())):
        a = [i]
        b = a
    a.append(1)
    return a, b


@pytest.mark.parametrize(
    "function",
    [
        changed_and_replaced_in_a_loop,
        replaced_in_a_loop_while_chosen,
        known_by_another_name,
        given_another_name_in_a_loop,
        changed_before_it_is_given_away,
        chosen_in_a_loop_and_changed_after,
        two_names_of_what_an_iteration_makes,
    ],
)
def test_what_a_loop_replaces_and_another_name_knows(function):
    check(function, *X)


def test_what_the_caller_gave():
    def function(given, x):
        mine = [x]
        c = given if x.sum() > 0 else mine
        c.append(x * 2)
        given[0] = x * 3
        return mine, c

    for sign in (1, -1):
        check(function, ([torch.ones(2)], sign * torch.ones(2)))
