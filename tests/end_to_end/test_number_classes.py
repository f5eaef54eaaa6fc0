"""Numbers and texts of classes derived from Python's own (``IntEnum``), together with numbers that a tensor decides."""

from __future__ import annotations

import enum
import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved


class Level(enum.IntEnum):
    HIGH = 6
    LOW = -6


class Flag(enum.IntFlag):
    A = 1
    B = 2


class Text(str, enum.Enum):  # StrEnum is new in Python 3.11
    A = "a"
    B = "b"


class Whole(int):
    pass


class Real(float):
    pass


class Own(int):
    def __eq__(self, other: object) -> Any:
        return "mine"

    def __hash__(self) -> int:
        return 3

    def __add__(self, other: Any) -> Any:
        return "added"

    __radd__ = __add__

    def __lt__(self, other: Any) -> Any:
        return "less"


@functools.singledispatch
def by_class(value: Any) -> Any:
    return "other"


@by_class.register
def _(value: int) -> Any:
    return value + 1


@by_class.register
def _(value: float) -> Any:
    return value * 2


def n(x: Any) -> int:
    return int(x.sum())


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "compared": lambda x: (n(x) == Level.HIGH, Level.HIGH == n(x), n(x) < Level.HIGH, n(x) != Level.LOW),
    "arithmetic": lambda x: (n(x) + Level.HIGH, Level.HIGH - n(x), n(x) * Level.HIGH, n(x) // Level.HIGH,
                             n(x) % Level.HIGH, n(x) / Level.HIGH, divmod(n(x), Level.HIGH)),
    "ints": lambda x: (n(x) == Whole(6), n(x) + Whole(6), Whole(2) ** 3 + n(x), -Whole(3) + n(x)),
    "floats": lambda x: (n(x) + Real(1.5), n(x) < Real(0.5), Real(2.0) * n(x), n(x) * Real(-0.0)),
    "own operators": lambda x: (n(x) == Own(6), Own(6) == n(x), n(x) + Own(1), Own(1) + n(x), n(x) > Own(1)),
    "builtins": lambda x: (max(n(x), Level.HIGH), min(Level.HIGH, n(x)), sum([n(x), Level.HIGH]),
                           abs(Level.LOW) + n(x)),
    "pow": lambda x: (pow(n(x), Level.HIGH), round(n(x) * Real(1.234), Whole(1)), int(Level.HIGH) + n(x),
                      float(Level.HIGH) + n(x), bool(Level.HIGH) and n(x)),
    "one of them": lambda x: Level.HIGH if x.sum() > 0 else 3,
    "members": lambda x: [(m, m == 6, m + 1, m is Level.HIGH, m.name)
                          for m in [Level.HIGH if x.sum() > 0 else Level.LOW]],
    "texts": lambda x: [(s, s == "a", s.value, {"a": 1, "b": 2}[s], {Text.A: 1, Text.B: 3}[s])
                        for s in [Text.A if x.sum() > 0 else Text.B]],
    "tensors": lambda x: (x * Level.HIGH + x**Level.HIGH, x.sum(Level.HIGH - 6), torch.full((2,), Level.HIGH) + n(x)),
    "indices": lambda x: (x[: abs(n(x)) if n(x) > 0 else Level.LOW], [1, 2, 3][n(x) * 0 + Level.HIGH - 5],
                          range(Level.HIGH)[n(x) % 3], list(range(n(x) % 3 + Whole(1)))),
    "shown": lambda x: (f"{n(x) + Level.HIGH}", str(Level.HIGH), f"{Level.HIGH}"),
    "math": lambda x: (math.gcd(n(x), Level.HIGH), math.fmod(n(x), Real(4.0)), math.pow(n(x), Level.HIGH),
                       math.atan2(n(x), Whole(3)), math.copysign(Real(2.0), n(x))),
    "parts": lambda x: (n(x).__class__, n(x).numerator, n(x).denominator, (n(x) > 0).numerator, by_class(n(x)),
                        by_class(float(x.detach().sum()))),
    "numpy": lambda x: (n(x) + 0, np.float64(2.0) * 3),
}  # fmt: skip
INPUTS = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0.5, -0.25, 0.1])]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_eager(name: str, gradient: bool, tmp_path: Path) -> None:
    calls = [(x.clone().requires_grad_(gradient),) for x in INPUTS]
    static = check(FUNCTIONS[name], *calls)
    if name in ("compared", "arithmetic", "ints", "floats", "tensors", "indices", "math"):
        check_saved(FUNCTIONS[name], static, tmp_path / "numbers.d2s", *calls)


def test_text_that_a_callback_gives_to_c_code() -> None:
    with pytest.raises(TraceError, match=r"D2S210.*sub\(\)"):
        to_static(lambda x: re.sub("a", lambda found: str(n(x)), "abc"))(INPUTS[0])


@pytest.mark.parametrize("function", [lambda x: n(x) & Flag.A, lambda x: Flag.B | n(x)])
def test_operators_of_flags_are_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises(TraceError, match=r"D2S(262|210|212)"):
        to_static(function)(INPUTS[0])
