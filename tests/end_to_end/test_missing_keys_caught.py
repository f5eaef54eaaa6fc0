"""``try: d[k]`` with ``except KeyError``, where only the run knows the key, or the keys that the dict has."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check, same


def a_fixed_dict(x: Any) -> Any:
    d = {1: "one", 3: "three"}
    try:
        return d[int(x[1])]
    except KeyError as error:
        return f"none: {error}", error.args


def an_ordered_dict(x: Any) -> Any:
    d = OrderedDict([(1, x * 2), (2, x * 3)])
    try:
        v = d[int(x[2])]
    except LookupError:
        v = -x
    return v


def filled_in_a_loop(x: Any) -> Any:
    d: dict[int, Any] = {}
    for i in range(int(x[0])):
        d[int(x[i])] = i
    try:
        v = d[int(x[1])]
    except KeyError:
        v = -1
    else:
        v = v + 10
    return v, d


def counted(x: Any) -> Any:
    d: dict[int, int] = {}
    new = 0
    for i in range(len(x)):
        k = int(x[i])
        try:
            d[k] += 1
        except KeyError:
            d[k] = 1
            new += 1
    return d, new


def grouped(x: Any) -> Any:
    d: dict[int, list[int]] = {}
    for i in range(int(x[0]) + 1):
        try:
            d[int(x[i])].append(i)
        except KeyError:
            d[int(x[i])] = [i]
    return d


def deleted(x: Any) -> Any:
    d = {int(x[0]): 1, int(x[1]): 2}
    said = []
    for i in range(len(x)):
        try:
            del d[int(x[i])]
        except KeyError as error:
            said.append(error.args[0])
        finally:
            said.append(len(d))
    return d, said


def two_lookups(x: Any) -> Any:
    d = {int(x[0]): x * 2, int(x[1]): x * 3}
    k = int(x[2])
    try:
        a = d[k]
        k += 1
        b = d[k]
    except KeyError:
        return x * k, k
    return a * b, k


def pairs(x: Any) -> Any:
    d = {(int(x[0]), 1): 5, (int(x[1]), 2): 6}
    found = []
    for i in range(3):
        key = (int(x[i]), i + 1)
        try:
            found.append(d[key])
        except KeyError:
            found.append(-1)
    return found


def removed_between(x: Any) -> Any:
    d = {int(x[0]): 1, int(x[1]): 2}
    try:
        v = d[int(x[2])]
        d.clear()
        v += d[int(x[2])]
    except KeyError:
        v = -1
    return v, d


def default_dicts(x: Any) -> Any:
    made: Any = defaultdict(list)
    none: Any = defaultdict(None)
    for i in range(len(x)):
        k = int(x[i])
        made[k].append(i)
        try:
            none[k] = none[k] + 1
        except KeyError:
            none[k] = 0
    return dict(made), dict(none)


def counters(x: Any) -> Any:
    c: Any = Counter()
    for i in range(len(x)):
        c[int(x[i])] += 1
    try:
        v = c[int(x[2]) + 40]
    except KeyError:
        v = -1
    del c[int(x[0])]
    return v, c


def with_gradients(x: Any) -> Any:
    memo: dict[int, Any] = {}
    total = x.sum() * 0
    for i in range(len(x)):
        k = int(x[i])
        try:
            y = memo[k]
        except KeyError:
            y = memo[k] = (x * k).sin()
        total = total + y.sum() * (i + 1)
    return total, len(memo)


def replaced_between(x: Any) -> Any:
    d = {int(x[0]): 1, int(x[1]): 2}
    k = int(x[0])
    try:
        v = d[k]
        del d[k]
        d[k + 10] = v  # as many keys as before
        v += d[k]
    except KeyError:
        v = -1
    return v, d


CASES = [a_fixed_dict, an_ordered_dict, filled_in_a_loop, counted, grouped, deleted, two_lookups, pairs,
         removed_between, replaced_between, default_dicts, counters, with_gradients]  # fmt: skip
INPUTS = [[3.0, 1, 2, 1], [1.0, 0, 7, 7], [2.0, 2, 3, 2], [3.0, 3, 3, 0]]


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_as_eager(function: Callable[..., Any]) -> None:
    check(function, *((torch.tensor(values, requires_grad=True),) for values in INPUTS))


@pytest.mark.parametrize("function", [counted, two_lookups, with_gradients], ids=lambda function: function.__name__)
def test_loaded(function: Callable[..., Any], tmp_path: Path) -> None:
    static = dy2static.to_static(function)
    static(torch.tensor(INPUTS[0]))
    dy2static.save(static, tmp_path / "f.d2s")
    loaded = dy2static.load(tmp_path / "f.d2s")
    for values in INPUTS:
        same(loaded(torch.tensor(values)), function(torch.tensor(values)))


def test_a_key_that_is_missing_outside_of_the_try_is_an_error() -> None:
    def f(x: Any) -> Any:
        d = {int(x[0]): 1, int(x[1]): 2}
        try:
            v = d[int(x[2])]
        except KeyError:
            v = 0
        return v + d[int(x[3])]

    static = dy2static.to_static(f)
    same(static(torch.tensor([1.0, 2, 5, 1])), 1)
    with pytest.raises(KeyError, match="^9$"):
        static(torch.tensor([1.0, 2, 1, 9]))
