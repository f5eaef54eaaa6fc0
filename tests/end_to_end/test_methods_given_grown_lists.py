"""Special methods of users' classes that meet a list whose length only the run knows: converted, as others are."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check, same


class Counts:
    """Counts what it is given."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __add__(self, other: Any) -> Any:
        return "add", len(other), other[0]

    def __radd__(self, other: Any) -> Any:
        return "radd", len(other), other[-1]

    def __mul__(self, other: Any) -> Any:
        return len(other)

    def __rmul__(self, other: Any) -> Any:
        return -len(other)

    def __or__(self, other: Any) -> Any:
        return NotImplemented

    def __ror__(self, other: Any) -> Any:
        return "ror", len(other)

    def __lt__(self, other: Any) -> Any:
        return len(other) > 2

    def __gt__(self, other: Any) -> Any:
        return len(other) > 1

    def __eq__(self, other: object) -> Any:
        return len(other) > 2  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return 1

    def __neg__(self) -> int:
        return len(self.value)

    def __index__(self) -> int:
        return len(self.value)

    def __format__(self, spec: str) -> str:
        return f"{spec}{len(self.value)}"

    def __str__(self) -> str:
        return f"s{len(self.value)}"


class Items(list[Any]):
    def __radd__(self, other: Any) -> Any:
        return "+Items", len(other), len(self)


class Keeps:
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, (name, len(value)))


class Gives:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __iter__(self) -> Any:
        for item in self.value:
            yield item * 2


@dataclasses.dataclass
class Counted:
    items: Any
    count: int = 0

    def __post_init__(self) -> None:
        self.count = len(self.items)


def _kept(ys: Any) -> Any:
    keeps = Keeps()
    keeps.kept = ys
    return keeps.kept


def _added_in_place(ys: Any) -> Any:
    a: Any = Counts()
    a += ys
    b: Any = (1, 2)
    b += (ys,)
    c: Any = tuple(ys)
    c *= Counts()
    return a, b, c


def _unpacked(ys: Any) -> Any:
    a, *b = Gives(ys)
    return a, b


USES: dict[str, Callable[[Any], Any]] = {
    "+": lambda ys: [Counts() + ys, ys + Counts()],
    "*": lambda ys: [Counts() * ys, ys * Counts()],
    "|": lambda ys: ys | Counts(),
    "<": lambda ys: [Counts() < ys, ys < Counts(), Counts() > ys],
    "==": lambda ys: [Counts() == ys, ys == Counts(), Counts() != ys],
    "in": lambda ys: Counts() in [ys],
    "-": lambda ys: -Counts(ys),
    "an index": lambda ys: [[7, 8, 9, 10][Counts(ys)], list(range(Counts(ys))), operator.index(Counts(ys))],
    "text": lambda ys: [f"{Counts(ys):q}", format(Counts(ys), "r"), str(Counts(ys)), f"{Counts(ys)!s}"],
    "a class of lists": lambda ys: ys + Items([1]),
    "functions of operator": lambda ys: [operator.add(Counts(), ys), operator.lt(ys, Counts())],
    "an attribute that is set": _kept,
    "unpacking": _unpacked,
    "augmented": _added_in_place,
    "a tuple": lambda ys: [Counts() + tuple(ys), tuple(ys) + Counts(), Counts() == tuple(ys)],
}


@pytest.mark.parametrize("name", list(USES))
def test_uses(name: str) -> None:
    use = USES[name]

    def f(x: torch.Tensor) -> Any:
        ys = [3, 1]
        if x.sum() > 0:
            ys.append(2)
        return use(ys)

    check(f, (torch.ones(2),), (-torch.ones(2),), paths=("program",))


def test_after_an_iterator_from_outside_gave_an_item() -> None:
    """The trace cannot begin again then."""
    def f(x: torch.Tensor) -> Any:
        first, ys, s = next(items), [3, 1], {1, 2}
        if x.sum() > 0:
            ys.append(2)
            s.add(3)
        return first, Counts() + ys, ys < Counts(), -Counts(ys), s & {2, 3}, x * 2

    for x in (torch.ones(2), -torch.ones(2)):
        items = iter([7])
        expected = f(x)
        items = iter([7])
        got = dy2static.to_static(f)(x)
        same(got, expected, "after an iterator")


def test_a_method_that_a_generated_constructor_calls() -> None:
    def f(x: torch.Tensor) -> Any:
        ys = [3, 1]
        if x.sum() > 0:
            ys.append(2)
        return Counted(ys).count

    static = dy2static.to_static(f)
    for x in (torch.ones(2), -torch.ones(2)):
        same(static(x), f(x), "what it counts")
