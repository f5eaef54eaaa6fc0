"""Constructors that ``dataclass`` wrote, plain or with a function around them, given what only a run knows."""

from __future__ import annotations

import functools
from collections import OrderedDict
from dataclasses import InitVar, dataclass, field

import pytest
import torch

from tests.oracle import check


@dataclass
class Plain:
    last: torch.Tensor
    steps: tuple = ()


@dataclass
class Decides:
    last: torch.Tensor
    steps: tuple = ()
    more: list = field(default_factory=list)
    factor: InitVar[int] = 3

    def __post_init__(self, factor):
        self.total = len(self.steps) * factor
        if self.last.sum() > 4:
            self.more.append(self.steps[-1])


@dataclass(frozen=True)
class Frozen:
    last: torch.Tensor
    steps: tuple = ()


@dataclass
class Derived(Decides):
    name: str = "derived"


class Mapping(OrderedDict):
    """Items that are attributes as well."""

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


@dataclass
class Output(Mapping):
    last: torch.Tensor = None
    steps: tuple = None
    never: tuple = None

    def __post_init__(self):
        for name in ("last", "steps", "never"):
            value = self.__dict__.get(name)
            if value is not None:
                self[name] = value


@dataclass
class Wrapped(Output):
    pass


def _renaming(init):
    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        if "all_steps" in kwargs:
            kwargs["steps"] = kwargs.pop("all_steps")
        init(self, *args, **kwargs)

    return __init__


Wrapped.__init__ = _renaming(Wrapped.__init__)


def _made(x, bound, cls, **more):
    steps = ()
    while x.sum() < bound:
        steps += (x,)
        x = x + 1
    return cls(x, steps, **more)


def plain(x, bound):
    return _made(x, bound, Plain)


def frozen(x, bound):
    return _made(x, bound, Frozen)


def decides(x, bound):
    return _made(x, bound, Decides, factor=2)


def derived(x, bound):
    return _made(x, bound, Derived, name="other")


def output(x, bound):
    return _made(x, bound, Output)


def wrapped(x, bound):
    return _made(x, bound, Wrapped)


@pytest.mark.parametrize("function", [plain, frozen, decides, derived, output, wrapped], ids=lambda f: f.__name__)
def test_as_eager(function) -> None:
    check(function, *([torch.ones(2), torch.tensor(bound)] for bound in (0.0, 5.0, 30.0)))
