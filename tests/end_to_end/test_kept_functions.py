"""A function that an earlier converted call made and something kept reads sets that differ between paths as eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

KEPT: dict[str, Any] = {}


class Keeper:
    pass


KEEPER: Any = Keeper()


def keep(x: torch.Tensor) -> torch.Tensor:
    """Keeps functions of every kind."""
    three = {3}

    def defined(s: Any, t: Any) -> Any:
        return s - t

    def outer(s: Any, t: Any) -> Any:
        def inner(u: Any) -> Any:
            return u | three

        return inner(s ^ t)

    def generator(s: Any, t: Any) -> Any:
        yield s & t
        yield s | t

    class Made:
        def method(self, s: Any, t: Any) -> Any:
            return s <= t

        def __and__(self, other: Any) -> Any:
            return three & other

        @property
        def of(self) -> Any:
            return lambda s: s - three

    KEPT["a lambda"] = lambda s, t: s & t
    KEPT["a def"] = defined
    KEPT["one inside another"] = outer
    KEPT["with a default"] = lambda s, t=three: s & t
    KEPT["a comparison"] = lambda s, t: (s < t, s >= t)
    KEPT["a comprehension"] = lambda s, t: [s & u for u in (t, three)]
    KEPT["a condition"] = lambda s, t: 1 if s & t else 0
    KEPT["augmented"] = lambda s, t: [s := s | t, s][1]
    KEPT["a generator"] = lambda s, t: list(generator(s, t))
    KEPT["a generator function"] = generator
    KEPT["a method"] = Made().method
    KEPT["an operator"] = lambda s, t: Made() & s
    KEPT["a property"] = lambda s, t: Made().of(s)
    KEPT["through another"] = lambda s, t: defined(s, t)
    KEEPER.kept = lambda s, t: t - s
    return x


EAGER = keep(torch.ones(2)) is not None and dict(KEPT)


@pytest.fixture(scope="module", autouse=True)
def _kept_by_a_trace() -> None:
    dy2static.to_static(keep)(torch.ones(2))


@pytest.mark.parametrize("name", list(EAGER))
def test_of_sets_that_differ(name: str) -> None:
    def use(x: torch.Tensor) -> Any:
        s, t = {1, 2}, {2, 3}
        if x.sum() > 0:
            s.add(3)
        found = KEPT[name](s, t)
        return x * 2, list(found) if name == "a generator function" else found

    calls = (torch.ones(2, requires_grad=True),), (torch.full((2,), -1.0, requires_grad=True),)
    check(use, *calls, paths=("program",))


def test_of_an_attribute() -> None:
    def use(x: torch.Tensor) -> Any:
        d, t = {1: x}, {2, 3}
        if x.sum() > 0:
            d[3] = x + 1
        return KEEPER.kept(d.keys(), t), x * len(KEEPER.kept(d.keys(), t))

    check(use, (torch.ones(2),), (-torch.ones(2),))


def test_a_name_that_is_stored_later() -> None:
    def use(x: torch.Tensor) -> Any:
        s = {1, 2}
        if x.sum() > 0:
            s.add(3)
        return counted(s), counted(s)

    def make(x: torch.Tensor) -> Any:
        count = 0

        def counted(s: set[int]) -> Any:
            nonlocal count
            count += 1
            return count, s & {3, 4}

        return counted

    for maker in (make, dy2static.to_static(make)):
        counted = maker(torch.ones(2))
        static = dy2static.to_static(use)
        for x in (torch.ones(2), -torch.ones(2)):
            first, second = static(x)
            assert second[0] == first[0] + 1
            assert first[1] == second[1] == ({3} if x.sum() > 0 else set())
