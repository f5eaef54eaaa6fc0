"""Lists and dicts that hold other kinds of things, or have other keys, on some paths after a change in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check


def calls() -> list[tuple[Any, ...]]:
    values = ([1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [5.0, -1.0, -1.0], [-1.0, 5.0, -9.0])
    return [(torch.tensor(value, requires_grad=True),) for value in values]


def a_key_on_one_path(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x * 2
    return d, len(d), "q" in d, d.get("q", x), list(d), d["p"] + 1


def read_on_the_other(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x * 2
    return d["q"]


def two_keys(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x * 2
    if x[0] > 0:
        d["r"] = x * 3
    d["z"] = x
    return d


def nested(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x * 2
        if x[0] > 2:
            d["r"] = x
    elif x[1] > 0:
        del d["p"]
    d["z"] = x
    return d


def iterated(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x * 2
    total = torch.zeros(3)
    for value in d.values():
        total = total + value
    return total, sum(d.values())


def a_comprehension(x):
    return {k: t for k, t in zip("abc", (x, x + 1, x - 1)) if t.sum() > 0}


def in_a_loop(x):
    d = {"p": x}
    for j in range(int((x > 0).sum())):
        if x[j] > 0:
            d["q"] = x * 2
    return d


def in_a_function_of_its_own(x):
    d = {"p": x}

    def put(name, value):
        d[name] = value

    if x.sum() > 0:
        put("q", x)
    return d


def handed_to_a_function(x):
    def put(target):
        target["q"] = x

    d = {"p": x}
    if x.sum() > 0:
        put(d)
    return d


def items_of_other_kinds(x):
    items = [x, 1]
    if x.sum() > 0:
        items[1] = "one"
        items[0] = (x, x)
    return items


def a_value_of_several_that_is_changed(x):
    d = {"p": x} if x.sum() > 0 else {"p": x, "q": x}
    if x[0] > 0:
        d["p"] = x * 2
    return d


def another_way_to_leave(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x
    if x[0] > 2:
        return d, 1
    return d["p"]


def rows_of_a_path(x):
    rows = [[x]]
    if x.sum() > 0:
        if x[0] < 3:
            row = []
            row.append(x * 2)
            rows.append(row)
        rows = [one + [x] for one in rows]
    return rows


def a_row_of_several(x):
    rows = [[x]]
    if x.sum() > 0:
        rows.append([x * 2])
        if x[0] > 3:
            return rows
    rows[-1].append(x * 3)
    rows[0] = rows[0] + [x + 1]
    return rows


def rows_made_anew_in_a_loop(x):
    rows = [[x]]
    if x.sum() > 0:
        rows.append([x * 2])
    if x[0] > 3:
        return rows
    for _ in range(int((x > 0).sum())):
        rows = [[one * 0.5 for one in row] for row in rows]
    return rows


@pytest.mark.parametrize(
    "function",
    [
        rows_of_a_path, a_row_of_several, rows_made_anew_in_a_loop,
        a_key_on_one_path, read_on_the_other, two_keys, nested, iterated, a_comprehension,
        in_a_function_of_its_own, handed_to_a_function, items_of_other_kinds, a_value_of_several_that_is_changed,
        another_way_to_leave,
    ],
)  # fmt: skip
def test_equal_eager(function):
    check(function, *calls())


def with_another_name(x):
    d = {"p": x}
    e = d
    if x.sum() > 0:
        d["q"] = x * 2
    return d, e, d is e


def with_another_name_of_the_path(x):
    d = {"p": x}
    e = {"p": x}
    if x.sum() > 0:
        d["q"] = x * 2
        e = d
    d["r"] = x
    return d, e


def in_another_container(x):
    d = {"p": x}
    held = [d]
    if x.sum() > 0:
        d["q"] = x * 2
    return held


def two_names_for_one_of_several(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x
    e = d
    if x[0] > 0:
        d["r"] = x
    return d, e


def one_of_several_in_a_list(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x
    e = [d]
    if x[0] > 0:
        d["r"] = x
    return d, e


def one_of_several_in_a_function(x):
    d = {"p": x}
    if x.sum() > 0:
        d["q"] = x
    e = d

    def put():
        e["r"] = x

    if x[0] > 0:
        put()
    return d, e


@pytest.mark.parametrize(
    "function",
    [
        with_another_name, with_another_name_of_the_path, in_another_container, in_a_loop,
        two_names_for_one_of_several, one_of_several_in_a_list, one_of_several_in_a_function,
    ],
)  # fmt: skip
def test_what_another_name_would_show_is_equal_or_refused(function):
    try:
        check(function, *calls())
    except TraceError as error:
        assert error.code in ("D2S254", "D2S226")


def test_too_many_different_contents_are_refused():
    def function(x):
        d = {}
        for number, key in enumerate("abcdef"):
            if x[number] > 0:
                d[key] = x
        return d

    with pytest.raises(TraceError, match="32 different sets of items") as caught:
        to_static(function)(torch.ones(6))
    assert caught.value.code == "D2S254"


def test_where_frames_are_run_by_torch_compile():
    """Then Python passes arguments otherwise, and counts other references to them."""
    torch._dynamo.run(check)(two_keys, *calls())


def rows_of_several_in_a_loop(x):
    rows = [[x]]
    if x[0] > 0:
        rows.append([x + 1])
        if x[1] > 0:
            rows = [[x]]
    n = 0
    while n < 2 and x.sum() < 1.5:
        n = n + 1
        rows = [row + [x] for row in rows]
    return rows


def test_rows_of_several_in_a_loop():
    check(rows_of_several_in_a_loop, *calls())


def sets_among_items(x):
    s, t = {1, 2}, {1, 2, 3}
    if x.sum() > 0:
        s.add(3)
    return s in [[0], s], s in (s,), t in [[0], s], s not in [t], [s] == [t], (s, 1) == (t, 1)


def test_sets_among_items():
    """Two sets of which one has the mark of several contents are not compared as they are."""
    check(sets_among_items, *calls())
