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
