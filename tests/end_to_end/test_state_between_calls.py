"""What changes between two calls, and is read in ways that no converted code shows: the second call sees it."""

from __future__ import annotations

import abc
import collections
import copy
import dataclasses
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import to_static
from tests.oracle import same

X = torch.arange(4.0)
Case = tuple[Callable[[Any], Any], Callable[[], Any]]


class Thing:
    """With the methods that builtins and containers call."""

    number: Any = 1

    def __init__(self, number: Any = 1) -> None:
        self.number = number

    def __eq__(self, other: Any) -> Any:
        return self.number == (other.number if isinstance(other, Thing) else other)

    def __hash__(self) -> int:
        return int(self.number)

    def __lt__(self, other: Any) -> Any:
        return self.number < other.number

    def __gt__(self, other: Any) -> Any:
        return self.number > other.number

    def __radd__(self, other: Any) -> Any:
        return other + self.number

    def __add__(self, other: Any) -> Any:
        return Thing(self.number + getattr(other, "number", other))

    def __len__(self) -> int:
        return int(self.number)

    def __repr__(self) -> str:
        return "t" * int(self.number)

    def __call__(self, x: Any) -> Any:
        return x * self.number

    def __enter__(self) -> Any:
        return self.number

    def __exit__(self, *error: object) -> None:
        pass


def of_thing(read: Callable[[Any, Any], Any]) -> Callable[[], Case]:
    """A use of an object whose number changes."""

    def make() -> Case:
        thing = Thing(1)
        return lambda x: read(x, thing), lambda: setattr(thing, "number", 3)

    return make


def of_values(make: Callable[[], Any], read: Callable[[Any, Any], Any], change: Callable[[Any], Any]) -> Any:
    """A use of something that is changed."""

    def made() -> Case:
        value = make()
        return lambda x: read(x, value), lambda: change(value)

    return made


def entered(x: Any, thing: Any) -> Any:
    with thing as number:
        return x * number


def caught_attribute(x: Any, box: Any) -> Any:
    try:
        return x * box.more
    except AttributeError:
        return x


class Dynamic:
    def __init__(self) -> None:
        self.held = {"more": 2.0}

    def __getattr__(self, name: str) -> Any:
        if name == "more":
            return self.held[name]
        raise AttributeError(name)


class Missing(dict[Any, Any]):
    number = 1.0

    def __missing__(self, key: Any) -> Any:
        return self.number


@dataclasses.dataclass(order=True)
class Record:
    a: float = 1.0


def with_classes(read: Callable[[Any, Any], Any], change: Callable[[Any, Any], Any]) -> Any:
    """A use of an object of a derived class, where its base changes."""

    def make() -> Case:
        class Base:
            number = 1.0

            def method(self) -> Any:
                return self.number

            def __call__(self, x: Any) -> Any:
                return x

        class Made(Base):
            number = 2.0

            def method(self) -> Any:
                return super().method() * 2

            def of_base(self) -> Any:
                return super().number

        one = Made()
        return lambda x: read(x, one), lambda: change(Base, one)

    return make


def registered() -> Case:
    class Kind(abc.ABC):
        pass

    one = Record()
    return lambda x: x * 2 if isinstance(one, Kind) else x, lambda: Kind.register(Record)


def scheduled() -> Case:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return lambda x: x * scheduler.get_last_lr()[0], lambda: (optimizer.step(), scheduler.step())


def a_gradient(change: Callable[[Any], Any], start: Any = None) -> Any:
    def make() -> Case:
        weight = nn.Parameter(torch.ones(4))
        weight.grad = start
        return lambda x: x if weight.grad is None else x * weight.grad, lambda: change(weight)

    return make


CASES: dict[str, Any] = {
    "in": of_thing(lambda x, t: x * 2 if 1 in [t] else x),
    "==": of_thing(lambda x, t: x * 2 if t == 1 else x),
    "list ==": of_thing(lambda x, t: x * 2 if [t] == [1] else x),
    "index": of_thing(lambda x, t: x * [t, 1].index(1)),
    "count": of_thing(lambda x, t: x * [t, 1].count(1)),
    "hash": of_thing(lambda x, t: x * hash(t)),
    "key": of_thing(lambda x, t: x * {1: 5.0}.get(t, 1.0)),
    "max": of_thing(lambda x, t: x * max(t, Thing(2)).number),
    "sorted": of_thing(lambda x, t: x * sorted([t, Thing(2)])[0].number),
    "sum": of_thing(lambda x, t: x * sum([t, t])),
    "reduce": of_thing(lambda x, t: x * functools.reduce(operator.add, [t, t]).number),
    "operator.add": of_thing(lambda x, t: x * operator.add(t, 1).number),
    "len": of_thing(lambda x, t: x * len(t)),
    "truth": of_thing(lambda x, t: x * 2 if t else x),
    "repr": of_thing(lambda x, t: x * len(repr(t))),
    "format": of_thing(lambda x, t: x * len(f"{t}")),
    "%": of_thing(lambda x, t: x * len("%s" % t)),
    "call": of_thing(lambda x, t: t(x)),
    "with": of_thing(entered),
    "copy": of_thing(lambda x, t: x * copy.copy(t).number),
    "vars": of_values(Record, lambda x, r: x * sum(vars(r).values()), lambda r: setattr(r, "b", 2.0)),
    "__dict__": of_values(Record, lambda x, r: x * len(r.__dict__), lambda r: setattr(r, "b", 2.0)),
    "caught AttributeError": of_values(Record, caught_attribute, lambda r: setattr(r, "more", 4.0)),
    "asdict": of_values(Record, lambda x, r: x * dataclasses.asdict(r)["a"], lambda r: setattr(r, "a", 4.0)),
    "dataclass ==": of_values(Record, lambda x, r: x * 2 if r == Record() else x, lambda r: setattr(r, "a", 4.0)),
    "dataclass <": of_values(Record, lambda x, r: x * 2 if r < Record(2.0) else x, lambda r: setattr(r, "a", 4.0)),
    "__getattr__": of_values(Dynamic, lambda x, d: x * d.more, lambda d: d.held.update(more=4.0)),
    "hides __getattr__": of_values(Dynamic, lambda x, d: x * d.more, lambda d: setattr(d, "more", 4.0)),
    "__missing__": of_values(Missing, lambda x, d: x * d["z"], lambda d: setattr(d, "number", 4.0)),
    "UserDict": of_values(lambda: collections.UserDict(a=1.0), lambda x, d: x * d["a"], lambda d: d.update(a=4.0)),
    "ChainMap": of_values(
        lambda: collections.ChainMap({"a": 1.0}), lambda x, d: x * d["a"], lambda d: d.maps.insert(0, {"a": 4.0})),
    "dict of a ChainMap": of_values(
        lambda: collections.ChainMap({"a": 1.0}), lambda x, d: x * dict(d)["a"], lambda d: d.maps[0].update(a=4.0)),
    "list of a UserList": of_values(
        lambda: collections.UserList([1.0]), lambda x, d: x * sum(list(d)), lambda d: d.append(4.0)),
    "max of a UserList": of_values(
        lambda: collections.UserList([1.0]), lambda x, d: x * max(d), lambda d: d.append(4.0)),
    "len of a UserDict": of_values(
        lambda: collections.UserDict(a=1.0), lambda x, d: x * len(d), lambda d: d.update(b=4.0)),
    "partial, keywords": of_values(
        lambda: functools.partial(lambda x, k: x * k, k=2.0), lambda x, p: p(x), lambda p: p.keywords.update(k=4.0)),
    "partial, list": of_values(
        lambda: functools.partial(lambda k, x: x * k[0], [2.0]), lambda x, p: p(x), lambda p: p.args[0].insert(0, 5.0)),
    "SimpleNamespace": of_values(
        lambda: types.SimpleNamespace(k=1.0), lambda x, s: x * s.k, lambda s: setattr(s, "k", 4.0)),
    "super method": with_classes(
        lambda x, one: x * one.method(), lambda base, one: setattr(base, "method", lambda self: 50.0)),
    "super attribute": with_classes(lambda x, one: x * one.of_base(), lambda base, one: setattr(base, "number", 50.0)),
    "__call__": with_classes(
        lambda x, one: one(x), lambda base, one: setattr(base, "__call__", lambda self, x: x * 50)),
    "abstract base class": registered,
    "learning rate": scheduled,
    "no gradient": a_gradient(lambda weight: setattr(weight, "grad", torch.ones(4) * 2)),
    "another gradient": a_gradient(lambda weight: setattr(weight, "grad", torch.ones(4) * 2), torch.ones(4)),
    "gradient taken away": a_gradient(lambda weight: setattr(weight, "grad", None), torch.ones(4)),
    "sizes only": of_values(
        lambda: types.SimpleNamespace(t=torch.ones(4)), lambda x, s: x * s.t.shape[0],
        lambda s: setattr(s, "t", torch.ones(7))),
    "size()": of_values(
        lambda: types.SimpleNamespace(t=torch.ones(4)), lambda x, s: x * s.t.size(0),
        lambda s: setattr(s, "t", torch.ones(7))),
    "a tensor is there": of_values(
        lambda: types.SimpleNamespace(t=torch.ones(4)), lambda x, s: x if s.t is None else x * 2,
        lambda s: setattr(s, "t", None)),
    "kind of tensor": of_values(
        lambda: types.SimpleNamespace(t=torch.ones(4)), lambda x, s: x * 2 if isinstance(s.t, nn.Parameter) else x,
        lambda s: setattr(s, "t", nn.Parameter(torch.ones(4)))),
    "two tensors become one": of_values(
        lambda: types.SimpleNamespace(s=torch.ones(4), t=torch.ones(4)), lambda x, s: x * 2 if s.s is s.t else x,
        lambda s: setattr(s, "s", s.t)),
    "one tensor becomes two": of_values(
        lambda: types.SimpleNamespace(**dict.fromkeys("st", torch.ones(4))), lambda x, s: x * 2 if s.s is s.t else x,
        lambda s: setattr(s, "s", torch.ones(4))),
    "hasattr of a Python module": of_values(
        lambda: types.ModuleType("made"), lambda x, m: x * 2 if hasattr(m, "more") else x,
        lambda m: setattr(m, "more", 1)),
    "getattr of a Python module": of_values(
        lambda: types.ModuleType("made"), lambda x, m: x * getattr(m, "more", 3), lambda m: setattr(m, "more", 5)),
    "dtype only": of_values(
        lambda: types.SimpleNamespace(t=torch.ones(4)), lambda x, s: x * 2 if s.t.dtype == torch.float32 else x,
        lambda s: setattr(s, "t", torch.ones(4, dtype=torch.float64))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_second_call_sees_it(name: str) -> None:
    use, change = CASES[name]()
    static = to_static(use)
    assert torch.equal(static(X), use(X))
    change()
    assert torch.equal(static(X), use(X))


class Plain(nn.Module):
    """With a tensor that is no parameter and no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.t: Any = torch.ones(4)


OF_TENSORS: dict[str, Callable[[Any, Any], Any]] = {
    "size": lambda m, x: x * m.t.shape[0],
    "dtype": lambda m, x: x * 2 if m.t.dtype == torch.float32 else x,
    "requires_grad": lambda m, x: x * 2 if m.t.requires_grad else x,
    "value": lambda m, x: x + m.t.sum(),
}


@pytest.mark.parametrize("name", OF_TENSORS)
def test_a_tensor_that_is_no_parameter_of_a_module(name: str) -> None:
    class Model(Plain):
        def forward(self, x: Any) -> Any:
            return OF_TENSORS[name](self, x)

    eager, static = Model(), to_static(Model())
    for value in (torch.ones(4), torch.ones(2), torch.ones(4).double(), torch.ones(4, requires_grad=True), None):
        eager.t = static.t = value
        same(outcome(static), outcome(eager))


def outcome(use: Callable[[Any], Any]) -> Any:
    try:
        return use(X)
    except Exception as error:
        return type(error)


def test_a_view_of_a_dict() -> None:
    held = {"a": 1.0}
    view = held.values()
    static = to_static(lambda x: x * sum(view))
    assert torch.equal(static(X), X)
    held["b"] = 2.0
    assert torch.equal(static(X), X * 3)
