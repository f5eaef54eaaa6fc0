"""Iterators that a call is given together with a value that differs between paths: each may take its items."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [-1.0, -1.0, -1.0])]


def word(x: torch.Tensor) -> str:
    return "pos" if x.sum() > 0 else "negative"


def named(x: torch.Tensor) -> dict[str, int]:
    found = {"a": 1}
    if x.sum() > 0:
        found["b"] = 2
    return found


def counted(x: torch.Tensor) -> Any:
    d = named(x)
    return (list(zip(itertools.count(), d)), list(zip(d, itertools.count())), list(zip(d.items(), itertools.count())),
            list(zip(d.values(), itertools.count(5))), list(zip(word(x), itertools.count(1, 2))))  # fmt: skip


def in_comprehensions(x: torch.Tensor) -> Any:
    d = named(x)
    pairs = [(i * x, k) for i, k in zip(itertools.count(), d)]
    return {k: i for i, k in zip(itertools.count(), d)}, pairs


def mapped(x: torch.Tensor) -> Any:
    d = named(x)
    return list(map(lambda k, i: (i, k), d, itertools.count())), list(map(lambda i, c: c * i, iter([2, 3]), word(x)))


def repeated(x: torch.Tensor) -> Any:
    return list(zip(itertools.cycle([0, 1]), named(x))), list(zip(itertools.repeat(x), word(x)))


def of_containers(x: torch.Tensor) -> Any:
    s = word(x)
    return (list(zip(iter([x, 2, 3, 4]), s)), list(zip(reversed([1, 2]), s, iter(range(9)))),
            list(zip(zip(itertools.count(), iter("xyz")), enumerate(iter("xyz"), 2), s)))  # fmt: skip


def looped(x: torch.Tensor) -> Any:
    y = x
    for i, k in zip(itertools.count(1), named(x)):
        y = y * i + len(k)
    return y


def to_containers(x: torch.Tensor) -> Any:
    f = list if x.sum() > 0 else tuple
    return f(iter([1, 2])), list(deque(iter([3, 2]), 1 if x.sum() > 0 else None))


def joined(x: torch.Tensor) -> Any:
    return ("," if x.sum() > 0 else ";").join(iter(["a", "b"])), math.prod(iter([3, 2]), start=1)


def to_functions(x: torch.Tensor) -> Any:
    def first(items: Iterator[int]) -> Any:
        return list(items)

    def second(items: Iterator[int]) -> Any:
        return [x * item for item in items]

    return (first if x.sum() > 0 else second)(iter([1, 2]))


def to_classes(x: torch.Tensor) -> Any:
    class A:
        def __init__(self, items: Iterator[int]) -> None:
            self.items = list(items)

    class B(A):
        pass

    return (A if x.sum() > 0 else B)(iter([1, 2])).items


def updated(x: torch.Tensor) -> Any:
    d = {1: 2} if x.sum() > 0 else {2: 3}
    d.update(zip("ab", itertools.count()))
    d |= zip("c", itertools.count())
    return d, dict.fromkeys(iter("abc"), word(x))


def of_sets(x: torch.Tensor) -> Any:
    s = {1} if x.sum() > 0 else {2}
    s.update(iter([1, 3, 4]))
    return s, s.union(iter([1, 2, 5])), s.issubset(iter([1, 3, 4])), s.intersection(iter([1, 2]))


def searched(x: torch.Tensor) -> Any:
    return ("b" if x.sum() > 0 else "d") in iter("abd")


def of_a_bool(x: torch.Tensor) -> Any:
    start = 1 if x.sum() > 0 else True
    return list(itertools.islice(itertools.count(start), 2))


def of_the_library(x: torch.Tensor) -> Any:
    weights = [1, 1, 2] if x.sum() > 0 else None
    return statistics.fmean(iter([1.0, 2.0, 4.0]), weights)


def cut(x: torch.Tensor) -> Any:
    return list(itertools.islice(iter([1, 2, 3]), 1 if x.sum() > 0 else None))


@pytest.mark.parametrize("function", [
    of_the_library, cut, counted, in_comprehensions, mapped, repeated, of_containers, looped, to_containers, joined,
    to_functions, to_classes, updated, of_sets, searched, of_a_bool,
], ids=lambda function: function.__name__)  # fmt: skip
def test_each_value_takes_the_same_items(function: Callable[..., Any]) -> None:
    check(function, *CALLS)


def with_a_generator(x: torch.Tensor) -> Any:
    return list(zip((i for i in range(5)), word(x)))


def with_a_map(x: torch.Tensor) -> Any:
    return list(zip(map(str, [1, 2, 3]), word(x)))


def with_a_name(x: torch.Tensor) -> Any:
    numbers = itertools.count()
    return list(zip(numbers, word(x))), next(numbers)


def of_a_map(x: torch.Tensor) -> Any:
    return ("," if x.sum() > 0 else ";").join(map(str, [1, 2]))


def a_generator_in_a_dict(x: torch.Tensor) -> Any:
    d = {1: 2} if x.sum() > 0 else {2: 3}
    d.update((k, k) for k in "ab")
    return d


@pytest.mark.parametrize("function", [with_a_generator, with_a_map, with_a_name, of_a_map, a_generator_in_a_dict],
                         ids=lambda function: function.__name__)  # fmt: skip
def test_what_each_value_would_take_items_from_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match="D2S266"):
        to_static(function)(*CALLS[0])
