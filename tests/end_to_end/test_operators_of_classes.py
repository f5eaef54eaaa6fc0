"""Operators that a user's class defines: their code is converted, and what they read is guarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import same

X = torch.arange(4.0)


class Value:
    scale = 2.0

    def __init__(self, t: Any) -> None:
        self.t = t

    def __add__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return Value(self.t + other * self.scale)
        return Value(self.t - other)

    def __radd__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return Value(other * 3 + self.t)
        return Value(self.t - other)

    def __mul__(self, other: Any) -> Any:
        return NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return NotImplemented

    def __matmul__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return self.t @ other
        return self.t

    def __pow__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return self.t
        return self.t**other

    def __divmod__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return 1.0, other
        return 2.0, 3

    def __neg__(self) -> Any:
        if self.t.sum() > 0:
            return Value(-self.t)
        return self

    def __abs__(self) -> Any:
        if self.t.sum() > 0:
            return Value(self.t)
        return Value(-self.t)

    def __round__(self, digits: Any = None) -> Any:
        if self.t.sum() > 0:
            return 1.0 if digits is None else digits
        return 2.0

    def __eq__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return self.scale == other
        return False

    def __lt__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return True
        return False

    def __index__(self) -> int:
        return int(self.t.sum() > 0)

    def __iter__(self) -> Any:
        if self.t.sum() > 0:
            yield self.t
        yield self.t + self.scale

    def __format__(self, spec: str) -> str:
        if self.t.sum() > 0:
            return "more" + spec
        return "less" + spec

    def __str__(self) -> str:
        if self.t.sum() > 0:
            return "more"
        return "less"


class Derived(Value):
    def __radd__(self, other: Any) -> Any:
        if self.t.sum() > 0:
            return Value(self.t * 100)
        return Value(self.t)


USES: dict[str, Callable[[Any], Any]] = {
    "value + 1": lambda x: (Value(x) + 1).t,
    "1 + value": lambda x: (1 + Value(x)).t,
    "tensor + value": lambda x: (x + Value(x)).t,
    "value + derived": lambda x: (Value(x) + Derived(x)).t,
    "value * 2": lambda x: Value(x) * 2,
    "value @ x": lambda x: Value(x) @ x,
    "value ** 2": lambda x: Value(x) ** 2,
    "pow": lambda x: pow(Value(x), 2),
    "divmod": lambda x: divmod(Value(x), 2),
    "-value": lambda x: (-Value(x)).t,
    "abs": lambda x: abs(Value(x)).t,
    "round": lambda x: (round(Value(x)), round(Value(x), 2)),
    "value == 2": lambda x: Value(x) == 2.0,
    "2 == value": lambda x: 2.0 == Value(x),
    "value != 3": lambda x: Value(x) != 3,
    "value < 3": lambda x: Value(x) < 3,
    "3 > value": lambda x: 3 > Value(x),
    "items[value]": lambda x: [10, 20][Value(x)],
    "[*value]": lambda x: [*Value(x)],
    "f(*value)": lambda x: (lambda *items: len(items))(*Value(x)),
    "one, *rest = value": lambda x: (lambda one, *rest: (one, rest))(*Value(x)),
    "value + 1 + 2": lambda x: (Value(x) + 1 + 2).t,
    "3 + (value + 1)": lambda x: (3 + (Value(x) + 1)).t,
    "-(value + 1)": lambda x: (-(Value(x) + 1)).t,
    "abs(value + 1)": lambda x: abs(Value(x) + 1).t,
    "(value + 1) == 2": lambda x: (Value(x) + 1) == 2.0,
    "(value + 1) < 2": lambda x: (Value(x) + 1) < 2.0,
    "sum": lambda x: sum([Value(x), 1, 2]).t,
    "list(value)": lambda x: list(Value(x)),
    "format": lambda x: f"{Value(x)} {Value(x):>9}",
    "str": lambda x: str(Value(x)),
    "%": lambda x: "%s and %r" % (Value(x), 1),
}


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", USES)
def test_they_decide_on_tensors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use = USES[name]
    static = to_static(use)
    for _ in range(2):
        for x in (X, -X):
            same(outcome(lambda x=x: static(x)), outcome(lambda x=x: use(x)))
        monkeypatch.setattr(Value, "scale", 3.0)  # they read it
