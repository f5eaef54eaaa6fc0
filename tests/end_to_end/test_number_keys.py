"""Dicts and sets asked for a number that a tensor decides: one of the keys that are there, or none."""

from __future__ import annotations

import collections
import enum
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved


class Level(enum.IntEnum):
    HIGH = 6
    LOW = -6


class Missing(dict[Any, Any]):
    def __missing__(self, key: Any) -> Any:
        return key * 2


class Lower(dict[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(-key) if key > 3 else 7


TEXTS = {6: "a", -6: "b", 0: "c"}
NUMBERS = {6: 1.5, -6: 2.5, 0: 0.0, "q": 7, None: 8, (6,): 9}
LISTS = {6: [1], -6: [2, 3], 0: []}
COUNTS = collections.Counter([6, 6, 0, 1])
ORDERED = collections.OrderedDict([(6, 1), (0, 2), (-6, 3)])
LEVELS = {Level.HIGH: 1, Level.LOW: 2, 0: 3}


def number(x: Any) -> int:
    return int(x.sum())


def items(x: Any) -> Any:
    return TEXTS[number(x)], NUMBERS[number(x)] * x, ORDERED[number(x)], LEVELS[number(x)], TEXTS[2 * number(x) // 2]


def by_float(x: Any) -> Any:
    return TEXTS[float(number(x))], TEXTS.get(float(x.detach().sum()), "none")


def by_bool(x: Any) -> Any:
    return {True: 1, False: 2}[bool(x.sum() > 0)], {1: x, 0: -x}[bool(x.sum() > 0)], {True: x, 0: 3}[int(x.sum() > 0)]


def gets(x: Any) -> Any:
    n = number(x)
    return NUMBERS.get(n + 1, 9.0) * x, TEXTS.get(n), TEXTS.get(n, 3), dict.get(NUMBERS, n, 1), {}.get(n, x)


def asked(x: Any) -> Any:
    n = number(x)
    return [n in TEXTS, n + 1 not in NUMBERS, n in TEXTS.keys(), n in ORDERED.values(), NUMBERS.__contains__(n),
            n in {6, 1}, n in frozenset([0]), operator.contains(TEXTS, n), {1, 6}.__contains__(n), n in {}, n in LEVELS,
            n == Level.HIGH, n in [Level.LOW], n in {Level.LOW: 1}]  # fmt: skip


def counted(x: Any) -> Any:
    return COUNTS[number(x)], COUNTS[number(x) + 1], COUNTS.get(number(x), 5)


def counted_in_a_loop(x: Any) -> Any:
    total = 0
    for i in range(abs(number(x)) + 1):
        total = total + COUNTS[i]
    return total


def missing(x: Any) -> Any:
    return Missing({6: 5})[number(x)], Missing({6: 5}).get(number(x), 3), Lower({-6: 1, 6: 2})[number(x)]


def of_tensors(x: Any) -> Any:
    return {6: x, 0: x * 2, -6: x * 3}[number(x)]


def lists(x: Any) -> Any:
    found = LISTS[number(x)]
    return len(found), found


def lists_that_change(x: Any) -> Any:
    made: dict[int, list[Any]] = {6: [x], 0: [x * 2], -6: []}
    made[number(x)].append(1)
    made.get(number(x), made[0]).append(2)
    return made


def no_such_key(x: Any) -> Any:
    return TEXTS[number(x) + 1]


def no_such_list(x: Any) -> Any:
    return LISTS[number(x) + 1]


def only_where_it_is(x: Any) -> Any:
    n = number(x)
    while n in NUMBERS and n > -100:
        n = n - 6
    return TEXTS[n + 3] if n + 3 in TEXTS else n


def several(x: Any) -> Any:
    return [TEXTS.get(i + number(x), "-") for i in range(3)], operator.getitem(NUMBERS, number(x))


def written(x: Any) -> Any:
    made = {6: x, 0: x * 2}
    if x.sum() > 0:
        made[6] = x * 5
    return made.get(number(x), x)


FUNCTIONS = [
    items, by_float, by_bool, gets, asked, counted, counted_in_a_loop, missing, of_tensors, lists, lists_that_change,
    no_such_key, no_such_list, only_where_it_is, several, written,
]  # fmt: skip
INPUTS = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0.5, -0.25, 0.1])]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_as_eager(function: Callable[..., Any], gradient: bool, tmp_path: Path) -> None:
    calls = [(x.clone().requires_grad_(gradient),) for x in INPUTS]
    static = check(function, *calls)
    if function not in (lists, no_such_list):  # lists from outside are returned
        check_saved(function, static, tmp_path / "keys.d2s", *calls)


class Odd:
    def __hash__(self) -> int:
        return 6

    def __eq__(self, other: object) -> bool:
        return other == 6


REFUSED: list[Callable[[Any], Any]] = [
    lambda x: {Odd(): 1}[number(x)], lambda x: {complex(6): 1}[number(x)],
    lambda x: NUMBERS.pop(number(x)), lambda x: NUMBERS.update({number(x): 3}),
]  # fmt: skip
ADDED: list[Callable[[Any], Any]] = [
    lambda x: collections.defaultdict(int, {6: 1})[number(x)], lambda x: {6: 1}.pop(number(x), None),
    lambda x: {6: 1}.setdefault(number(x), 2), lambda x: {6: 1}.update({number(x): 3}),
    lambda x: collections.defaultdict(int, {"six": 1})[number(x)], lambda x: {6: 1, "six": 2}.setdefault(number(x), 2),
]  # fmt: skip
"""Of a dict that the function makes, a number may become a key."""


@pytest.mark.parametrize("number", range(len(ADDED)))
def test_added(number: int) -> None:
    check(ADDED[number], *((x,) for x in INPUTS))


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number: int) -> None:
    with pytest.raises(TraceError) as found:
        to_static(REFUSED[number])(INPUTS[0])
    assert found.value.code in ("D2S265", "D2S210")
