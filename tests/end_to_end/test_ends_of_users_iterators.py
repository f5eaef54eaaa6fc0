"""Classes of the user's that say themselves when there is no other item, by ``__next__`` or ``__getitem__``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [-1.0, -1.0, -1.0])]


class Counted:
    def __init__(self, n: Any) -> None:
        self.n, self.i = n, 0

    def __iter__(self) -> Counted:
        return self

    def __next__(self) -> int:
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i


class CountedOtherwise(Counted):
    def __next__(self) -> int:
        if self.i < self.n:
            self.i += 1
            return self.i
        raise StopIteration


class Growing:
    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def __iter__(self) -> Growing:
        return self

    def __next__(self) -> torch.Tensor:
        if self.x.sum() > 5:
            raise StopIteration
        self.x = self.x + 1
        return self.x


class Multiples:
    def __init__(self, x: torch.Tensor, n: Any) -> None:
        self.x, self.n = x, n

    def __getitem__(self, i: int) -> torch.Tensor:
        if i >= self.n:
            raise IndexError(i)
        return i * self.x


class Held:
    def __init__(self, items: Any) -> None:
        self.items = items

    def __getitem__(self, i: int) -> Any:
        return self.items[i]


def count(x: torch.Tensor) -> int:
    return int((x > 0).sum())


def looped(x: torch.Tensor) -> Any:
    for v in Counted(count(x)):
        x = x + v
    return x


def from_a_generator(x: torch.Tensor) -> Any:
    def items() -> Any:
        yield from Counted(count(x))

    return list(items())


def of_a_class_made_inside(x: torch.Tensor) -> Any:
    class Inside:
        def __getitem__(self, i: int) -> torch.Tensor:
            if i >= int((x > 0).sum()):
                raise IndexError(i)
            return i * x

    return [v.sum() for v in Inside()]  # type: ignore[attr-defined]


def of_a_grown_list(x: torch.Tensor) -> Any:
    grown = []
    for i in range(count(x)):
        grown.append(x * i)
    return [item for item in Held(grown)]  # type: ignore[attr-defined]


def unpacked(x: torch.Tensor) -> Any:
    a, b = Counted(count(x))
    return a, b


@pytest.mark.parametrize("function", [
    looped, from_a_generator, of_a_class_made_inside, of_a_grown_list, unpacked,
    lambda x: [v for v in Counted(count(x))],
    lambda x: list(Counted(count(x))),
    lambda x: sum(Counted(count(x))),
    lambda x: max(Counted(count(x)), default=0),
    lambda x: [v for v in CountedOtherwise(count(x))],
    lambda x: [v for v in Growing(x)],
    lambda x: list(zip([1, 2], Counted(count(x)))),
    lambda x: next(Counted(count(x)), 10),
    lambda x: [*Counted(count(x))],
    lambda x: list(itertools.chain(Counted(count(x)), [1])),
    lambda x: list(Multiples(x, count(x))),
    lambda x: [v.sum() for v in Multiples(x, count(x))],
    lambda x: list(zip([1, 2], Multiples(x, count(x)))),
])  # fmt: skip
def test_an_end_that_only_the_run_knows_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match="D2S266"):
        to_static(function)(*CALLS[0])


def known(x: torch.Tensor) -> Any:
    return (list(Multiples(x, 2)), [v * 2 for v in Multiples(x, 3)], sum(Multiples(x, 2)), [*Multiples(x, 2)],
            list(zip(Multiples(x, 3), [1, 2])), list(map(torch.sum, Multiples(x, 2))), list(Counted(3)),
            next(Counted(0), 4), max(Counted(3)))  # type: ignore[call-overload]  # fmt: skip


def held(x: torch.Tensor) -> Any:
    it = iter(Held([x, 3, 4]))
    first = next(it)
    more = [0]
    more.extend(Held([1]))
    more += Held([2])
    return (first, list(it), next(it, 7), more, 3 in Held([1, 3]), sorted(Held([2, 1])), dict(Held([(1, 2)])),
            list(enumerate(Held("ab"))), [v for v in Held(x)], ",".join(Held("ab")), any(Held([0, 1])))  # fmt: skip


def left(x: torch.Tensor) -> Any:
    for v in Held([1, 2, 3]):  # type: ignore[attr-defined]
        if x.sum() > v:
            break
        x = x + v
    return x


def without_a_default(x: torch.Tensor) -> Any:
    return next(Counted(count(x)))


@pytest.mark.parametrize("function", [known, held, left, without_a_default], ids=lambda function: function.__name__)
def test_an_end_that_is_known(function: Callable[..., Any]) -> None:
    check(function, *CALLS)
