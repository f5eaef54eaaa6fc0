"""Lists and dicts on staged paths: one object stays one object, or changing it is refused."""

from __future__ import annotations

from collections import deque

import pytest
import torch

from runtime.errors import TraceError

X = [torch.arange(12.0).reshape(3, 4) + shift for shift in (0, 0.2, -3, -5, -8)]


def sorted_into_lists(x):
    found = {"pos": [], "neg": []}
    for row in x:
        found["pos" if row.sum() > 0 else "neg"].append(row)
    return len(found["pos"]), len(found["neg"]), found


def one_of_many_lists(x):
    lists = [[0], [1], [2]]
    lists[int(x.abs().sum()) % 3].append(5)
    return lists


def same_list_by_two_names(x):
    table = {}
    if x.sum() > 0:
        items = [1]
        table["items"] = items
    else:
        items = [2]
        table["items"] = items
    return table, items


def new_list_on_one_path(x):
    out = []
    if x.sum() > 0:
        out = [x]
    out.append(x * 2)
    return out


def alias_of_one_list(x):
    items = [x]
    other = items
    if x.sum() > 0:
        items.append(x + 1)
    other.append(x * 2)
    return items, other, items is other


def queues(x):
    queue = deque([x], maxlen=2)
    if x.sum() > 0:
        queue.append(x + 1)
    else:
        queue.appendleft(x - 1)
    return list(queue)


def text(x):
    result = ""
    for i in range(int(x.abs().sum()) % 5):
        result += str(i)
    return result


def folds(x):
    n = int(x.abs().sum()) % 4 + 1
    values = [v for v in x.flatten().tolist() if v > -20]
    return sum(range(n)), list(range(n)), max(values), min(range(n)), any(i > 2 for i in [n]), sum(values), all(values)


def iterators(x):
    total = x[0] * 0
    for row in reversed(list(x)):
        total = total + row
        if total.sum() > 30:
            break
    for i, (row, other) in enumerate(zip(x, x * 2)):
        total = total + row * i
        if total.sum() > 60:
            break
    return total


@pytest.mark.parametrize(
    "function",
    [
        sorted_into_lists,
        one_of_many_lists,
        same_list_by_two_names,
        new_list_on_one_path,
        alias_of_one_list,
        queues,
        text,
        folds,
        iterators,
    ],
)
def test_containers(check, function):
    check(function, *X)


def chosen_list(x):
    a, b = [1], [2]
    chosen = a if x.sum() > 0 else b
    chosen.append(3)
    return a, b


def alias_on_one_path(x):
    a = [1]
    if x.sum() > 0:
        chosen = a
    else:
        chosen = [x]
    chosen.append(3)
    return a


def original_changed_afterwards(x):
    a = [1]
    b = a
    if x.sum() > 0:
        a = [2]
    b.append(3)
    return a


def identity_of_a_copy(x):
    a, b = [1], [2]
    chosen = a if x.sum() > 0 else b
    return chosen is a


def replaced_in_a_loop(x):
    a = [0]
    items = a
    for i in range(int(x.abs().sum()) % 3):
        items = items + [i]
    items.append(7)
    return a, items


@pytest.mark.parametrize("function", [chosen_list, alias_on_one_path, original_changed_afterwards, identity_of_a_copy])
def test_what_may_be_another_object(check, function):
    check(function, *X)


def test_changing_what_may_be_another_object_since_a_loop(check):
    check(replaced_in_a_loop, *X)


def iterator_that_is_used_again(x):
    rows = iter([1, 2, 3])
    for row in rows:
        if x.sum() > row:
            break
    return list(rows)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (iterator_that_is_used_again, "D2S266"),
    ],
)
def test_what_cannot_be_undone_is_refused(traced, function, code):
    with pytest.raises(TraceError, match=code):
        traced(function, X[0])
