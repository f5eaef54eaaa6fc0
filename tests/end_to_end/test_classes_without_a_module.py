"""Classes in which a user put something other than a text where Python keeps the name of their module."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch

from tests.oracle import check, check_module

CALLS = [(torch.full((2,), value, requires_grad=True),) for value in (1.0, -1.0)]


class Tuple(tuple):
    pass


class List(list):
    pass


class Dict(dict):
    pass


class Plain:
    def __init__(self, v):
        self.v = v

    def __iter__(self):
        return iter([self.v])

    def __enter__(self):
        return self.v

    def __exit__(self, *args):
        return False


class Slots:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


@dataclasses.dataclass
class Record:
    v: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    v: Any


class Raised(Exception):
    pass


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) * 2


Named = collections.namedtuple("Named", "v")  # a module is given below
CLASSES: dict[type, Any] = {
    Tuple: lambda v: Tuple((v, v)), List: lambda v: List([v]), Dict: lambda v: Dict(v=v), Plain: Plain, Slots: Slots,
    Record: Record, Frozen: Frozen, Named: Named,
}  # fmt: skip
for _number, _cls in enumerate((*CLASSES, Raised, Net)):
    _cls.__module__ = (5, None)[_number % 2]  # type: ignore[assignment]


def _made(make, x):
    return make(x)


def _of_a_path(make, x):
    return make(x) if x.sum() > 0 else make(x * 2)


def _of_an_iteration(make, x):
    made = make(x)
    while x.sum() < 4:
        x = x.abs() + 1
        made = make(x)
    return made


def _in_a_list(make, x):
    found = []
    for v in x:
        if v > 0:
            found.append(make(v))
    return found, len(found)


def _with_an_attribute(make, x):
    made = make(x)
    if x.sum() > 0 and hasattr(made, "__dict__") and not isinstance(made, Frozen):
        made.k = 3
    return x * getattr(made, "k", 5)


@pytest.mark.parametrize("use", (_made, _of_a_path, _of_an_iteration, _in_a_list, _with_an_attribute))
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_its_instances(cls, use):
    make = CLASSES[cls]

    def function(x):
        return use(make, x)

    check(function, *CALLS, paths=("program",))


def test_its_exceptions_contexts_and_items():
    def function(x):
        try:
            if x.sum() > 0:
                raise Raised(2)
        except Raised as error:
            x = x * error.args[0]
        with Plain(x) as y:
            (z,) = Plain(y)
            return z + y

    check(function, *CALLS)


def test_its_modules():
    check_module(Net, *CALLS)
