"""``match`` on numbers that are only known while the Program runs, and on containers that hold them."""

from __future__ import annotations

import collections
from dataclasses import dataclass

import pytest
import torch

from tests.oracle import check

CALLS = [(torch.full((1,), value, requires_grad=True),) for value in (1.0, 2.0, 3.0, 4.0, 7.0, -1.0)]


@dataclass
class Point:
    x: object
    y: object


class Plain:
    def __init__(self, a):
        self.a = a


def literals(x):
    match int(x.sum()):
        case 1:
            return x + 1
        case 2 | 3:
            return x * 2
        case k if k > 5:
            return x * k
        case _:
            return x - 1


def classes(x):
    match x.sum().item():
        case int():
            return x
        case float(v) if v > 2:
            return x * v
        case float():
            return -x


def sequences(x):
    n = int(x.sum())
    match (n, 2):
        case (1, y):
            return x + y
        case [4, *rest]:
            return x * len(rest) + rest[0]
        case [a, 2]:
            return x * a


def middle_star(x):
    match [int(x.sum()), 3, 4, x]:
        case [1, *rest, last]:
            return last * len(rest), rest
        case [*rest, 4, last]:
            return last + rest[0], rest


def mappings(x):
    n = int(x.sum())
    match {"k": n, "z": 1, "t": x}:
        case {"k": 1, "t": t}:
            return t * 3
        case {"missing": 1}:
            return x
        case {"k": v, **rest}:
            return x * v + len(rest)


def guards_on_tensors(x):
    match 3:
        case 3 if x.sum() > 2:
            return x + 1
        case _:
            return x


def captures(x):
    r = 0
    match int(x.sum()):
        case 1 as q:
            r = q
        case (2 | 4) as z:
            r = z * 10
        case other:
            r = other
    return x * r


def attributes(x):
    total = x.sum()
    match Point(int(total), 2):
        case Point(1, y):
            return x + y
        case Point(x=2, y=b):
            return x * b
        case Plain(a=3):
            return x
        case Point(a, b):
            return x * a - b


def no_match(x):
    r = x
    match (int(x.sum()), "a"):
        case "a" | None | True:
            r = x + 1
        case (2, "a"):
            r = x + 2
        case []:
            r = x + 3
    return r


def in_a_loop(x):
    n = 0
    for _ in range(10):
        match int(x.sum()):
            case 3:
                break
            case 5 | 6:
                x = x + 1
                continue
            case _:
                x = x + 1
        n = n + 1
    return x, n


def values(x):
    match "ab":
        case "c":
            return x
        case ["a", "b"]:
            return x + 1
        case str(text):
            return x * len(text)


def deque(x):
    match collections.deque([1, int(x.sum())]):
        case [1, 2]:
            return x
        case [1, n]:
            return x * n


def a_guard_that_fails_keeps_its_names(x):
    match int(x.sum()):
        case k if k > 3:
            return x
        case _:
            return x * k


class Counted(list):
    """Its items are others each time."""

    n = 0

    def __iter__(self):
        self.n += 1
        return iter([item * self.n for item in self[:]])


class CountedTuple(tuple):
    def __iter__(self):
        LOG.append(len(self))
        yield from (self[place] + len(LOG) for place in range(len(self)))


LOG: list[int] = []


def names_alone(x):
    c = Counted([x, 2 * x])
    match c:
        case [a, b]:
            return a + b, c.n


def some_names(x):
    c = Counted([x, 2 * x, 3])
    match c:
        case [_, b, _]:
            return b, c.n


def no_names(x):
    c = Counted([x, 2 * x])
    match c:
        case [_, _]:
            return x, c.n


def a_name_and_a_star(x):
    c = Counted([x, 2 * x, 3])
    match c:
        case [a, *b]:
            return a, b, c.n


def between_stars(x):
    c = Counted([x, 2 * x, 3, 4])
    match c:
        case [a, *_, 4]:
            return a, c.n


def a_star_and_a_value(x):
    c = Counted([x, 2 * x, 3, 4])
    match c:
        case [a, *b, 5]:
            return a, b, c.n
        case [a, *b, d, 8 | 12]:
            return a, b, d, c.n


def each_case_again(x):
    c = Counted([x.sum().item(), 2, x])
    match c:
        case [3.0, b, _]:
            return x * b, c.n
        case [a, 4, _] if a > 3:
            return x * a, c.n
        case [_]:
            return x, c.n
        case [a, b, d] as whole:
            return d, a, b, whole.n
    return x


def nested(x):
    inner, c = Counted([x.sum().item(), 2]), Counted([1, 5])
    match [7, inner, (c, x)]:
        case [6, [a, b], _]:
            return x, inner.n
        case [7, [1.0, b], ([d, 5 as e], y)]:
            return y * b * d * e, inner.n, c.n
        case [7, [a, b], ([d, 5 as e], y)]:
            return y * a * b * d * e, inner.n, c.n
        case [7, [a, 2 as b], ([d, e], y)]:
            return y * a * b * d * e, inner.n, c.n
    return inner.n, c.n, x


def inside_others(x):
    c = Counted([1, 5])
    match {"k": c, "p": Point(c, 1)}:
        case {"k": [1 as a, b], "p": Point([d, e as f], 1)}:
            return x * a * b * d * e * f, c.n


def alternatives(x):
    c = Counted([1, 5])
    match c:
        case [1, 4] | [2, 10] | [_]:
            return x, c.n
        case [3, *_] | [_, _]:
            return x * 2, c.n


def of_a_tuple(x):
    LOG.clear()
    match CountedTuple((x, x.sum().item())):
        case [_, 3.0]:
            return x, list(LOG)
        case (a, b):
            return a * b, list(LOG)


def one_of_two(x):
    c, d = Counted([x, 2]), Counted([2 * x, 2])
    match c if x.sum() > 2 else d:
        case [a, 2 as b]:
            return a * b, c.n, d.n
        case [a, b]:
            return a - b, c.n, d.n


def in_iterations(x):
    c = Counted([1, 2])
    for t in x.repeat(3):
        match c:
            case [a, 2]:
                x = x + a
            case [a, b] if t > 2:
                x = x + a * b
    return x, c.n


COUNTED = [
    names_alone, some_names, no_names, a_name_and_a_star, between_stars, a_star_and_a_value, each_case_again, nested,
    inside_others, alternatives, of_a_tuple, one_of_two, in_iterations,
]  # fmt: skip


@pytest.mark.parametrize("function", COUNTED, ids=lambda f: f.__name__)
def test_the_items_that_a_class_gives_are_asked_for_once(function):
    check(function, *CALLS, none_is_zero=True)


FUNCTIONS = [
    literals, classes, sequences, middle_star, mappings, guards_on_tensors, captures, attributes, no_match, in_a_loop,
    values, deque, a_guard_that_fails_keeps_its_names,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_match(function):
    check(function, *CALLS, none_is_zero=True)


def test_a_class_that_takes_fewer_patterns_raises_what_eager_raises():
    def f(x):
        match Plain(x):
            case Plain(a):
                return a
        return x

    check(f, (torch.ones(2),))
