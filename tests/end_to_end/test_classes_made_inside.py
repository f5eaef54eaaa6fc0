"""Classes that a converted function makes with a call: their module is the caller's, and each call has its own."""

from __future__ import annotations

import collections
import dataclasses
import enum
import typing
from typing import Any

import pytest
import torch

from dy2static import to_static

pytestmark = pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")


def a_namedtuple() -> Any:
    return collections.namedtuple("Made", "a b")


def an_enum() -> Any:
    return enum.Enum("Made", "A B")


def a_typed_tuple() -> Any:
    return typing.NamedTuple("Made", [("a", int), ("b", int)])


def a_dataclass() -> Any:
    return dataclasses.make_dataclass("Made", ["a", "b"])


def by_type() -> Any:
    return type("Made", (), {})


@pytest.mark.parametrize("make", [a_namedtuple, an_enum, a_typed_tuple, a_dataclass, by_type])
def test_its_module_is_the_callers(make: Any) -> None:
    def f(x: Any) -> Any:
        made = make()
        return x * 2, made.__module__, made.__qualname__

    assert to_static(f)(torch.ones(1))[1:] == f(torch.ones(1))[1:]


@pytest.mark.parametrize("make", [a_namedtuple, a_typed_tuple, a_dataclass])
def test_each_call_has_its_own(make: Any) -> None:
    def f(x: Any) -> Any:
        return make()(x * 2, 1)

    static = to_static(f)
    for calls in (f, static):
        one, other = calls(torch.ones(1)), calls(torch.ones(1))
        assert type(one) is not type(other) and type(one).__name__ == "Made"
        assert torch.equal(one.a, other.a) and one.b == other.b == 1


Known = collections.namedtuple("Known", "a")


def test_a_class_that_a_module_has_is_one() -> None:
    def f(x: Any) -> Any:
        return Known(x)

    static = to_static(f)
    assert type(static(torch.ones(1))) is type(static(torch.ones(1))) is Known
