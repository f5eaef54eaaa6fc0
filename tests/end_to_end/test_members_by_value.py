"""A member of an enumeration by a value that only the run knows: ``Color(int(n))``."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


class Word(str, enum.Enum):
    UP = "up"
    DOWN = "down"


class Count(enum.IntEnum):
    ONE = 1
    TWO = 2


def its_name(x: torch.Tensor) -> Any:
    return Color(int(x.sum() > 0) + 1).name, Color(float(x.sum() > 0) + 1).value, Color(bool(x.sum() > -99)).name


def none_has_it(x: torch.Tensor) -> Any:
    return Color(int(x.sum() > 0) * 5 + 1).value


def by_text(x: torch.Tensor) -> Any:
    return Word("up" if x.sum() > 0 else "down").value, Word("u" + ("p" if x.sum() > -99 else "q"))


def a_number(x: torch.Tensor) -> Any:
    return Count(int(x.sum() > 0) + 1) * x, Count(int(x.sum() > 0) + 1) is Count.ONE


def a_key(x: torch.Tensor) -> Any:
    color = Color(int(x.argmax()) + 1)
    return {Color.RED: 1.0, Color.GREEN: 2.0}[color] * x, color is Color.RED


@pytest.mark.parametrize("function", [its_name, none_has_it, by_text, a_number, a_key], ids=lambda one: one.__name__)
def test_as_eager(function: Callable[..., Any]) -> None:
    check(function, *[(torch.tensor(one),) for one in ([1.0, 2.0], [-1.0, -2.0], [3.0, -1.0], [0.0, 0.0])])
