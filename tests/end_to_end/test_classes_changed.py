"""Classes that change between calls: what objects made inside have from their class is what it has now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static

X = torch.arange(3.0)


def make() -> Any:
    class Base:
        number = 2.0
        items = [1.0]

        def __init__(self, t: Any) -> None:
            self.t = t

        def method(self) -> Any:
            return self.t * self.number

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


READS: dict[str, Callable[[Any, Any], Any]] = {
    "method": lambda cls, x: cls(x).method(),
    "number": lambda cls, x: x * cls(x).number,
    "property": lambda cls, x: x * cls(x).prop,
    "class method": lambda cls, x: x * cls(x).of_class(),
    "static method": lambda cls, x: cls(x).static(x),
    "list": lambda cls, x: x * sum(cls(x).items),
    "of the class": lambda cls, x: x * cls.number,
    "getattr": lambda cls, x: x * getattr(cls(x), "number", 1.0),
    "hasattr": lambda cls, x: x * 2 if hasattr(cls(x), "more") else x,
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
}


@pytest.mark.parametrize("name", READS)
def test_a_change_is_seen(name: str) -> None:
    read = READS[name]
    for changed, change in CHANGES.items():
        base, cls = make()
        static = to_static(lambda x, cls=cls: read(cls, x))
        assert torch.equal(static(X), read(cls, X))
        change(base, cls)
        assert torch.equal(static(X), read(cls, X)), changed
