"""Which special methods of users' classes Python and torch ask at all, and what comes of one that raises on a path."""

from __future__ import annotations

import collections
import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved

INPUTS = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0.5, -0.25, 0.1])]


def calls(gradient: bool) -> list[Any]:
    return [(x.clone().requires_grad_(gradient),) for x in INPUTS]


class Number:
    """Its ``__index__`` is what a tensor decides, or always the same."""

    def __init__(self, x: Any, one: int, other: int) -> None:
        self.x, self.one, self.other = x, one, other

    def __index__(self) -> int:
        if self.one == self.other:
            return self.one
        return self.one if self.x.sum() > 0 else self.other


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, number: Any) -> Any:
        return x * number.one

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2, None


OPERATORS: dict[str, Callable[..., Any]] = {
    "zeros": lambda x, n, zero: torch.zeros(n),
    "ones": lambda x, n, zero: torch.ones(2, n),
    "size=": lambda x, n, zero: torch.zeros(size=(n, 2)),
    "list of sizes": lambda x, n, zero: torch.zeros([n]),
    "Size": lambda x, n, zero: torch.Size([n, 2]),
    "new_zeros": lambda x, n, zero: x.new_zeros(n),
    "full": lambda x, n, zero: torch.full((n,), 1.0),
    "eye": lambda x, n, zero: torch.eye(n),
    "arange": lambda x, n, zero: torch.arange(n),
    "linspace": lambda x, n, zero: torch.linspace(0, 1, n),
    "select": lambda x, n, zero: x.select(0, n),
    "select a dimension": lambda x, n, zero: x.select(zero, n),
    "narrow": lambda x, n, zero: x.narrow(0, zero, n),
    "topk": lambda x, n, zero: torch.topk(x, n)[0],
    "repeat": lambda x, n, zero: x.repeat(n),
    "repeat by two": lambda x, n, zero: x.repeat(n, 2),
    "expand": lambda x, n, zero: x.expand(n, 3),
    "expand by a list": lambda x, n, zero: x.expand([n, 3]),
    "tile": lambda x, n, zero: x.tile(n),
    "repeat_interleave": lambda x, n, zero: x.repeat_interleave(n),
    "as_strided": lambda x, n, zero: x.as_strided((n,), (1,)),
    "unsqueeze": lambda x, n, zero: x.unsqueeze(zero),
    "bincount": lambda x, n, zero: torch.bincount(torch.tensor([1, 1]), minlength=n),
    "plus": lambda x, n, zero: x + n,
    "add": lambda x, n, zero: torch.add(x, n),
    "times": lambda x, n, zero: x * n,
    "power": lambda x, n, zero: x**n,
    "fill": lambda x, n, zero: torch.full((2,), n),
    "clamp": lambda x, n, zero: x.clamp(n),
    "where": lambda x, n, zero: torch.where(x > 0, x, n),
    "softmax": lambda x, n, zero: x.softmax(dim=zero),
    "chunk": lambda x, n, zero: torch.chunk(x, n),
    "split": lambda x, n, zero: torch.split(x, n),
    "stack": lambda x, n, zero: torch.stack([x, x], zero),
    "cat": lambda x, n, zero: torch.cat([x, x], dim=zero),
    "sum": lambda x, n, zero: x.sum(zero),
    "cumsum": lambda x, n, zero: x.cumsum(zero),
    "norm": lambda x, n, zero: torch.norm(x, n),
    "tensor": lambda x, n, zero: torch.tensor(n),
    "equal": lambda x, n, zero: (x == n) is False,
    "item": lambda x, n, zero: x[zero],
    "slice": lambda x, n, zero: x[zero:n],
    "Function": lambda x, n, zero: Twice.apply(x, n),
    "pad": lambda x, n, zero: F.pad(x, (zero, zero)),
    "layer_norm": lambda x, n, zero: F.layer_norm(x, (Number(x, 3, 3),)),
}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("other", [1, 2], ids=["known", "decided"])
@pytest.mark.parametrize("name", OPERATORS)
def test_torch_asks_for_an_index_where_it_takes_one(name: str, other: int, gradient: bool) -> None:
    ask = OPERATORS[name]

    def function(x: Any) -> Any:
        n, zero = Number(x, 1, other), Number(x, 0, 0)
        try:
            return ask(x, n, zero)
        except (TypeError, RuntimeError) as error:
            return type(error).__name__, str(error)[:60]

    check(function, *calls(gradient))


def test_an_index_that_a_trace_cannot_follow_is_no_type_error() -> None:
    class Asking:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __index__(self) -> int:
            return int(torch.func.functionalize(torch.sin)(self.x).sum())

    with pytest.raises(TraceError, match="D2S271"):
        to_static(lambda x: torch.zeros(Asking(x)))(INPUTS[0])


class Whole(int):
    def __index__(self) -> int:
        return 2

    def __float__(self) -> float:
        return 9.5


class Real(float):
    def __float__(self) -> float:
        return 7.0


class Both:
    """``__float__`` goes before ``__index__``."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __float__(self) -> float:
        return 2.5 if self.x.sum() > 0 else 4.5

    def __index__(self) -> int:
        return 3


class Listed(list[Any]):
    def __getitem__(self, index: Any) -> Any:
        return -super().__getitem__(index)


class Queued(collections.deque[Any]):
    def __getitem__(self, index: Any) -> Any:
        return -super().__getitem__(index)


class Mapped(dict[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        return 100


class Items:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return self.x[index] if self.x.sum() > 0 else -self.x[index]


def indices_of_numbers(x: Any) -> Any:
    five = Whole(5)
    return [1, 2, 3, 4, 5, 6][five], len(range(five)), operator.index(five), x[Whole(1)], "abcdefg"[five], int(five)


def floats_of_numbers(x: Any) -> Any:
    return float(Whole(5)), math.sqrt(Whole(4)), math.sqrt(Real(4.0)), float(Real(4.0)), math.floor(Real(2.5))


def complex_of_numbers(x: Any) -> Any:
    return complex(Real(2.5)), complex(Whole(2))


def both(x: Any) -> Any:
    return float(Both(x)), math.sqrt(Both(x)), math.factorial(Both(x)), math.floor(Both(x)), int(Both(x))


def reversed_subclasses(x: Any) -> Any:
    a, b = x[0], x[1]
    return list(reversed(Listed([a, b]))), list(reversed(Queued([a, b]))), list(reversed(Mapped(a=1, b=2)))


def reversed_items(x: Any) -> Any:
    return list(reversed(Items(x)))


def reversed_on_a_path(x: Any) -> Any:
    held = Listed([x, x * 2])
    if x.sum() > 0:
        held.append(x * 3)
    return [each for each in reversed(held)]


FUNCTIONS = [
    indices_of_numbers, floats_of_numbers, complex_of_numbers, both, reversed_subclasses, reversed_items,
    reversed_on_a_path,
]  # fmt: skip


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_the_methods_that_python_asks(function: Callable[..., Any], gradient: bool, tmp_path: Path) -> None:
    static = check(function, *calls(gradient))
    check_saved(function, static, tmp_path / "asked.d2s", *calls(gradient))


class Missing:
    """An attribute that is there on one path only."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getattr__(self, name: str) -> Any:
        if self.__dict__["x"].sum() > 0:
            return 5
        raise AttributeError(name)

    @property
    def held(self) -> Any:
        if self.x.sum() > 0:
            return 5
        raise AttributeError("held")


class Looked:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __getattribute__(self, name: str) -> Any:
        if name == "held" and object.__getattribute__(self, "x").sum() > 0:
            raise AttributeError(name)
        return object.__getattribute__(self, "x").sum() if name == "held" else object.__getattribute__(self, name)


ABSENT: dict[str, Callable[[Any], Any]] = {
    "hasattr": lambda x: hasattr(Missing(x), "zz"),
    "default": lambda x: getattr(Missing(x), "zz", 3),
    "property": lambda x: getattr(Missing(x), "held", 3),
    "hasattr of a property": lambda x: hasattr(Missing(x), "held"),
    "__getattribute__": lambda x: getattr(Looked(x), "held", 3),
    "hasattr of __getattribute__": lambda x: hasattr(Looked(x), "held"),
}


@pytest.mark.parametrize("name", ABSENT)
def test_an_attribute_that_some_paths_lack(name: str) -> None:
    try:
        check(ABSENT[name], *calls(False))
    except TraceError as error:
        assert error.code == "D2S229"
