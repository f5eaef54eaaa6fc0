"""Lists and tuples of other lengths on some paths: unpacked, in displays of lists, and given to ``map``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.vectors import on_every_path
from tests.oracle import check


def in_a_display(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    return [*xs, x * 3], [x * 3, *xs], xs is ys


def two_in_a_display(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    if x[0] > 0:
        ys = [x, x, x]
    xs = [*xs, *ys]
    return xs, len(xs), ys


def tuples(x):
    xs = (x, x * 2)
    if x.sum() > 0:
        xs = (x,)
    return [*xs], [t * 2 for t in [*xs, x]]


def a_changed_one(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    made = [*xs]
    ys.append(x * 5)
    made.append(x)
    return made, xs, ys


def with_a_star(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    a, *rest = xs
    *most, b = xs
    return a, rest, most, b, len(rest)


def of_tuples(x):
    xs = (x, x * 2, x * 3)
    if x.sum() > 0:
        xs = (x + 1, x + 2)
    a, b, *rest = xs
    rest.append(x)
    return a, b, rest


def too_few_on_some_paths(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    a, b, *rest = xs
    return a, b, rest


def another_count_on_some_paths(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    a, b = xs
    return a, b


def under_a_test_of_the_length(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    a = b = x
    if len(xs) == 2:
        a, b = xs
    return a, b


def one_that_grew(x):
    xs, ys = [x, x * 2], [x + 1]
    for i in range(int((x > 0).sum())):
        ys.append(x * i)
    if x.sum() > 0:
        xs = ys
    a, *rest = xs
    return a, rest, [*xs, x]


def two_that_grew(x):
    xs, ys = [x, x * 2], [x + 1]
    for i in range(int((x > 0).sum())):
        ys.append(x * i)
        xs.append(x)
    if x.sum() > 0:
        xs = ys
    a, *rest = xs
    return a, rest, [*xs, x]


def items_of_other_kinds(x):
    xs = [x, 1]
    if x.sum() > 0:
        xs = ["one", x, (x, 2)]
    a, *rest = xs
    return a, rest, [*xs, 3]


def mapped(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    return list(map(lambda t: t * 2, xs)), [t for t in filter(lambda t: t.sum() > 1, xs)]


def mapped_later(x):
    xs, ys = [x, x * 2], [x + 1]
    if x.sum() > 0:
        xs = ys
    lazy = map(lambda t: t * 2, xs)
    ys.append(x * 7)
    return list(lazy), sum(map(lambda t: t.sum(), xs))


def mapped_in_a_loop(x):
    xs, ys = [x, x * 2], [x + 1]
    for i in range(int((x > 0).sum())):
        xs, ys = ys, list(map(lambda t: t * 2, xs))
    return xs, ys


def content_of_several(x):
    xs = [x, x * 2]
    if x.sum() > 0:
        xs.append(1)
    a, *rest = xs
    return a, rest, [*xs, x], list(map(lambda t: t * 2, xs))


@pytest.mark.parametrize(
    "function",
    [
        in_a_display, two_in_a_display, tuples, a_changed_one, with_a_star, of_tuples, too_few_on_some_paths,
        another_count_on_some_paths, under_a_test_of_the_length, one_that_grew, two_that_grew, items_of_other_kinds,
        mapped, mapped_later, mapped_in_a_loop, content_of_several,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_equal_eager(function: Any) -> None:
    check(function, *on_every_path())
