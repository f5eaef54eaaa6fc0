"""Comprehensions whose variable is a name of the function as well, in code that conversion moves into functions.

Since Python 3.12 a comprehension is part of its function, and the function's need for the outer name may be lost.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from dy2static.pipeline import STEPS
from dy2static.transforms.base import rewritten
from dy2static.transforms.comprehension_names import transform
from tests.dy2static.steps import convert_with

LOG: list[Any] = []


def read_in_a_construct_inside(xs, e):
    for x in xs:
        zeros = [0 for e in xs]
        if x > 1:
            return zeros, e
    return None


def rebound_in_a_loop_inside(xs, e):
    while len(xs) < 9:
        sizes = {e for e in xs}
        for x in [1, 2]:
            e = e + len(sizes) + x
        xs = xs + [e]
    return xs, e


def read_in_another_comprehension(xs, e):
    if xs:
        first = [e for e in xs]
        return first, [e for _ in xs]
    return e


def read_by_an_operand_of_a_lambda(xs, e):
    return (lambda: [e for e in xs] + ([1] if len(xs) > 9 else [e]))()


def read_by_an_operand_of_an_element(xs, e):
    return list([[e for e in xs], e if xs else 0] for _ in xs)


def one_inside_another(xs, e):
    for x in xs:
        table = {x: [e + y for e in [x, y]] for y in xs if (last := y)}
        if x:
            xs = [e, last]
    return table, xs


def functions_in_it(xs, e):
    if xs:
        made = [(lambda: e, lambda e: e, lambda x=e: x) for e in xs]
        return [(f(), g(7), h()) for f, g, h in made], (lambda: e)()
    return e


def first_iterable_is_outside(xs, e):
    if xs:
        return [e for e in [x * e for x in xs]], e
    return e


FUNCTIONS = [
    read_in_a_construct_inside, rebound_in_a_loop_inside, read_in_another_comprehension, read_by_an_operand_of_a_lambda,
    read_by_an_operand_of_an_element, one_inside_another, functions_in_it, first_iterable_is_outside,
]  # fmt: skip


@pytest.mark.parametrize("level", ["control_flow", "full"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_outcome(function: Any, level: Any, same_outcome: Any) -> None:
    module: ModuleType = sys.modules[__name__]
    same_outcome(function, convert_with(function, STEPS, level), module, [([1, 2, 3], 5), ([], 5), ([2], -1)])


def renamed(body: str) -> str:
    source = f"def f(xs, e):\n    def body():\n{body}\n    return body()"
    return rewritten(source, transform).partition("body():\n")[2].rpartition("\n")[0]


@pytest.mark.parametrize(
    "body",
    [
        "        nonlocal e\n        y = [e for e in xs]\n        return lambda: e",
        "        y = [e for e in xs]\n        return e, lambda: e",
        "        e = 1\n        y = [e for e in xs]\n        return lambda: e",
        "        y = (e for e in xs)\n        return lambda: e",
        "        y = [e for e in xs]\n        return lambda e: e",
    ],
)
def test_left_alone_where_python_is_right(body: str) -> None:
    assert renamed(body) == body


@pytest.mark.parametrize(
    "before, after",
    [
        ("[e for e in e.x]", "[e for e in e.x]"),
        ("[e for e in xs if (lambda: e)]", "[_d2s_e_1 for _d2s_e_1 in xs if (lambda: _d2s_e_1)]"),
        ("{e: lambda e: e for e in xs}", "{_d2s_e_1: lambda e: e for _d2s_e_1 in xs}"),
        ("[[e for e in [e]] for e in xs]", "[[_d2s_e_2 for _d2s_e_2 in [_d2s_e_1]] for _d2s_e_1 in xs]"),
    ],
)
def test_what_is_renamed(before: str, after: str) -> None:
    rest = "\n        return lambda: e"
    assert renamed(f"        y = {before}{rest}") == f"        y = {after}{rest}"
