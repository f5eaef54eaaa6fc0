"""``__init__`` and ``__new__`` that raise on a path that a tensor decides, inside a ``try``."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.oracle import check, check_module

CALLS = [[torch.tensor([1.0, 2.0])], [torch.tensor([-1.0, -2.0])], [torch.ones(3)]]


class Base:
    def __init__(self, value):
        if value.sum() < 0:
            raise ValueError("negative")
        self.value = value


class Derived(Base):
    def __init__(self, value, factor=2):
        self.factor = factor
        super().__init__(value)


class Holder:
    def __init__(self, value):
        self.first = Base(value + 2)
        self.second = Base(value)


class New:
    def __new__(cls, value):
        if value.sum() < 0:
            raise KeyError("n")
        made = super().__new__(cls)
        made.value = value
        return made


class Counted:
    seen: list[int] = []

    def __init__(self, value):
        self.value = value
        Counted.seen.append(1)
        if value.sum() < 0:
            raise KeyError("k")
        Counted.seen.append(2)


def at_once(x):
    try:
        return Base(x).value * 2
    except ValueError as error:
        return x, str(error)


def by_a_name(x):
    try:
        made = Derived(x)
    except ValueError:
        made = None
    return x if made is None else made.value * made.factor


def inside_of_another(x):
    try:
        holder = Holder(x)
        return holder.first.value + holder.second.value
    except ValueError as error:
        return x - 1, error.args


def in_a_loop(x):
    sums = []
    for shift in range(3):
        try:
            sums.append(Base(x + (shift - 1)).value.sum())
        except ValueError:
            sums.append(x.sum() * 0)
    return sums


def with_finally(x):
    log = []
    try:
        made = Derived(x, 3)
        log.append("made")
    except ValueError:
        log.append("not")
        return x * 5, log
    finally:
        log.append("end")
    return made.value * made.factor, log


def made_by_new(x):
    try:
        return New(x).value
    except KeyError:
        return -x


def after_some_stores(x):
    Counted.seen.clear()
    try:
        Counted(x)
        said = "made"
    except KeyError:
        said = "not"
    return said, list(Counted.seen), x


def of_another_kind(x):
    try:
        return Base(x).value
    except KeyError:
        return x


@pytest.mark.parametrize("function", [
    at_once, by_a_name, inside_of_another, in_a_loop, with_finally, made_by_new, after_some_stores, of_another_kind,
], ids=lambda f: f.__name__)
def test_as_eager(function):
    check(function, *CALLS)


class _Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        try:
            normal = torch.distributions.Normal(x, self.scale + x.sum(), validate_args=True)
        except ValueError:
            normal = torch.distributions.Normal(x, self.scale, validate_args=False)
        return normal.log_prob(x * 2)


def test_arguments_of_distributions():
    check_module(_Density, *CALLS, paths=("program",))
