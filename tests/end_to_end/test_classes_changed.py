"""Classes that change between calls: what objects made inside have from their class is what it has now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import same

X = torch.arange(3.0)


def make() -> Any:
    class Described:
        value = 2.0

        def __get__(self, one: Any, owner: Any = None) -> Any:
            return self.value

    class Meta(type):
        @property
        def of_meta(cls) -> Any:
            return cls.number

    class Base(metaclass=Meta):
        described = Described()
        number = 2.0
        items = [1.0]

        def __init__(self, t: Any) -> None:
            self.t = t

        def method(self) -> Any:
            return self.t * self.number

        def __enter__(self) -> Any:
            return 2.0

        def __exit__(self, *error: object) -> None:
            pass

        def __iter__(self) -> Any:
            return iter((3.0, 4.0))

        @property
        def prop(self) -> Any:
            return self.number * 3

        @classmethod
        def of_class(cls) -> Any:
            return cls.number

        @staticmethod
        def static(x: Any) -> Any:
            return x + 1

    class Made(Base):
        pass

    return Base, Made


def entered(one: Any, x: Any) -> Any:
    with one as number:
        return x * number


def looked_up(one: Any, name: str) -> Any:
    return X * 19 if name == "t" else object.__getattribute__(one, name)


READS: dict[str, Callable[[Any, Any], Any]] = {
    "method": lambda cls, x: cls(x).method(),
    "number": lambda cls, x: x * cls(x).number,
    "property": lambda cls, x: x * cls(x).prop,
    "class method": lambda cls, x: x * cls(x).of_class(),
    "static method": lambda cls, x: cls(x).static(x),
    "list": lambda cls, x: x * sum(cls(x).items),
    "namespace": lambda cls, x: x * vars(cls.__mro__[1])["number"],
    "items of the namespace": lambda cls, x: x * len([k for k in cls.__mro__[1].__dict__ if k[:2] != "__"]),
    "with": lambda cls, x: entered(cls(x), x),
    "iterated": lambda cls, x: (lambda a, *rest: x * a)(*cls(x)),
    "contains": lambda cls, x: x * 2 if 1.0 in cls(x) else x,
    "of the class": lambda cls, x: x * cls.number,
    "getattr": lambda cls, x: x * getattr(cls(x), "number", 1.0),
    "hasattr": lambda cls, x: x * 2 if hasattr(cls(x), "more") else x,
    "own attribute": lambda cls, x: cls(x).t,
    "descriptor": lambda cls, x: x * cls(x).described,
    "descriptor of the class": lambda cls, x: x * cls.described,
    "property of the metaclass": lambda cls, x: x * cls.of_meta,
}
CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "number": lambda base, cls: setattr(base, "number", 5.0),
    "number of the derived": lambda base, cls: setattr(cls, "number", 7.0),
    "list": lambda base, cls: base.items.append(3.0),
    "other list": lambda base, cls: setattr(base, "items", [4.0]),
    "method": lambda base, cls: setattr(base, "method", lambda self: self.t - 1),
    "property": lambda base, cls: setattr(base, "prop", property(lambda self: 11.0)),
    "class method": lambda base, cls: setattr(base, "of_class", classmethod(lambda cls: 13.0)),
    "static method": lambda base, cls: setattr(base, "static", staticmethod(lambda x: x * 17)),
    "constructor": lambda base, cls: setattr(base, "__init__", lambda self, t: setattr(self, "t", t * 19)),
    "one more": lambda base, cls: setattr(base, "more", 1),
    "lookup": lambda base, cls: setattr(base, "__getattribute__", lambda self, name: looked_up(self, name)),
    "what is missing": lambda base, cls: setattr(base, "__getattr__", lambda self, name: 23.0),
    "descriptor's value": lambda base, cls: setattr(type(vars(base)["described"]), "value", 29.0),
    "own value of the descriptor": lambda base, cls: setattr(vars(base)["described"], "value", 31.0),
    "descriptor's method": lambda base, cls: setattr(
        type(vars(base)["described"]), "__get__", lambda self, one, owner=None: 37.0),
    "other descriptor": lambda base, cls: setattr(cls, "described", type(vars(base)["described"])()),
    "__enter__": lambda base, cls: setattr(base, "__enter__", lambda self: 47.0),
    "__iter__": lambda base, cls: setattr(base, "__iter__", lambda self: iter((53.0, 59.0))),
    "__iter__ of the derived": lambda base, cls: setattr(cls, "__iter__", lambda self: iter((61.0, 67.0))),
    "__contains__": lambda base, cls: setattr(cls, "__contains__", lambda self, one: True),
    "no descriptor": lambda base, cls: setattr(cls, "described", 41.0),
    "property of the metaclass": lambda base, cls: setattr(type(base), "of_meta", property(lambda cls: 43.0)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", READS)
def test_a_change_is_seen(name: str) -> None:
    read = READS[name]
    for changed, change in CHANGES.items():
        base, cls = make()
        static = to_static(lambda x, cls=cls: read(cls, x))
        assert torch.equal(static(X), read(cls, X))
        change(base, cls)
        same(outcome(static), outcome(lambda x, cls=cls: read(cls, x)), changed)


def outcome(use: Callable[[Any], Any]) -> Any:
    try:
        return use(X)
    except Exception as error:  # a lookup of ours knows no methods
        return type(error)


class Stored:
    def __init__(self) -> None:
        self.kept = 1.0


def store(one: Any, x: Any) -> Any:
    one.kept = 3.0
    return x * one.kept


STORES: dict[str, Callable[[Any], Any]] = {
    "property": lambda cls: setattr(cls, "kept", property(lambda self: 5.0, lambda self, value: None)),
    "__setattr__": lambda cls: setattr(cls, "__setattr__", lambda self, name, value: None),
}


@pytest.mark.parametrize("name", STORES)
def test_a_change_of_how_attributes_are_stored_is_seen(name: str) -> None:
    results = []
    for convert in (to_static, lambda use: use):
        cls = type("Stored", (Stored,), {})
        one = cls()
        use = convert(lambda x, one=one: store(one, x))
        use(X)
        one.kept = 1.0
        STORES[name](cls)
        results.append((use(X).tolist(), one.kept))
    assert results[0] == results[1]
