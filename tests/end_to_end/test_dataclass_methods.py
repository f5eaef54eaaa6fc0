"""What ``dataclass`` writes: constructors whose ``__post_init__`` decides on tensors, comparisons of staged fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved


@dataclass
class Post:
    a: object
    b: list = field(default_factory=list)
    c: InitVar[object] = None
    n: int = 0
    def __post_init__(self, c):
        if self.a.sum() > 0:
            self.b.append(self.a)
        else:
            self.n = 5
        if c is not None:
            self.n += 1


def dc1(x):
    return Post(x), Post(x, c=3), len(Post(x).b)


def dc2(x):
    d = Post(x)
    return d, dataclasses.replace(d, a=x * 2, c=1)


@dataclass(frozen=True)
class Frozen:
    a: object
    s: object = 1
    def __post_init__(self):
        object.__setattr__(self, "s", self.a.sum() if self.a.sum() > 0 else -self.a.sum())


def fr1(x):
    return Frozen(x), Frozen(x).s


def fr2(x):
    f = Frozen(x)
    try:
        f.a = 3
    except dataclasses.FrozenInstanceError as e:
        return str(e), f.s


@dataclass(order=True)
class Ordered:
    k: float
    n: str = "a"


def or1(x):
    return (
        sorted([Ordered(float(x.sum())), Ordered(1.0), Ordered(0.0)]),
        max(Ordered(float(x[0])), Ordered(0.5)),
        Ordered(float(x[0])) < Ordered(0.2),
        Ordered(float(x[0])) == Ordered(1.0),
    )


def or2(x):
    return (
        Ordered(1.0) < Ordered(2.0),
        Ordered(float(x[0])) != Ordered(1.0),
        Ordered(float(x[0])) in [Ordered(1.0), Ordered(-1.0)],
    )


def or3(x):
    try:
        return Ordered(float(x[0])) < 3
    except TypeError as e:
        return str(e)


def or4(x):
    return (
        Ordered(float(x[0])) == 3, Ordered(1.0) == Ordered(1.0),
        min([Ordered(float(x[0])),
        Ordered(float(x[1]))], key=lambda o: o.k),
    )


@dataclass
class Child(Post):
    z: int = 9


def ch1(x):
    return Child(x, z=int(x.sum() > 0))


@dataclass
class Second(Post):
    z: int = 9
    def __post_init__(self, c):
        super().__post_init__(c)
        self.z = self.z * 2 if self.a.sum() > 0 else 1


def ch2(x):
    return Second(x), Second(x, c=1).n


@dataclass
class Checked:
    t: object
    def __post_init__(self):
        if self.t.sum() > 0:
            raise ValueError("bad")


def v2(x):
    return Checked(x).t


def misses_an_argument(x):
    try:
        Post()
    except TypeError as e:
        return str(e)


@dataclass(eq=True)
class Holder:
    t: object


def tt(x):
    try:
        return Holder(x) == Holder(x), Holder(x) == Holder(x.clone())
    except RuntimeError as e:
        return str(e)


def tt2(x):
    return Holder(x[0]) == Holder(x[0] * 1), Holder(x[0]) == Holder(x[1])


@pytest.mark.parametrize("function", [
    dc1, dc2, fr1, fr2, or1, or2, or3, or4, ch1, ch2, v2, misses_an_argument, tt, tt2
], ids=lambda function: function.__name__)
def test_as_eager(function: Callable[..., Any]) -> None:
    check(function, *[(torch.tensor(one),) for one in ([1.0, 2.0], [-1.0, -2.0], [0.0, 0.0], [0.1, -0.2])])


def test_the_class_is_as_it_was() -> None:
    before = Post.__dict__["__post_init__"]
    check(dc1, (torch.ones(2),))
    assert Post.__dict__["__post_init__"] is before and "__post_init__" not in Child.__dict__


@dataclass(order=True)
class Above:
    k: object


@dataclass(eq=False)
class AddsField(Above):
    """Compared by what ``Above`` has: its methods are inherited."""

    n: object = 1


@dataclass(order=True)
class Hidden:
    k: object
    n: object = field(default=0, compare=False)


class Told(type):
    """A metaclass that counts what is set in its classes."""

    count = 0

    def __setattr__(cls, name: str, value: object) -> None:
        Told.count += 1
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        Told.count += 1
        super().__delattr__(name)


@dataclass
class OfTold(metaclass=Told):
    a: object
    n: int = 0

    def __post_init__(self) -> None:
        if self.a.sum() > 0:
            self.n = 1


def inherited(x):
    one, other = AddsField(float(x[0].detach()), 1), AddsField(1.0, 2)
    return one == other, one != other, one < other, one >= other


def hidden(x):
    one, other = Hidden(float(x[0].detach()), 1), Hidden(1.0, 2)
    return one == other, one <= other, max(one, other).n


def told(x):
    before = Told.count
    return OfTold(x).n, Told.count - before


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", [inherited, hidden, told], ids=lambda one: one.__name__)
def test_the_class_that_dataclass_wrote_for(function: Callable[..., Any], gradient: bool, tmp_path: Path) -> None:
    calls = [(torch.tensor(each).requires_grad_(gradient),) for each in ([1.0, 2.0], [-1.0, -2.0], [0.5, 1.0])]
    static = check(function, *calls)
    check_saved(function, static, tmp_path / "dataclasses.d2s", *calls)
