"""Operators that refuse a dtype, or a number beside it, raise though nothing reads their results."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static

DTYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.float16, torch.uint8,
          torch.complex64]  # fmt: skip
ALONE = ("neg", "abs", "clone", "isnan", "logical_not", "sum", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin",
         "tanh", "sigmoid", "relu", "erf", "mean", "square", "sign", "floor", "ceil", "isinf", "isfinite")  # fmt: skip
WITH_NUMBERS = ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge", "div", "pow")
PAIRS = (*WITH_NUMBERS, "maximum", "minimum", "logical_and", "logical_or", "rsub")
NUMBERS = (2, 0, -1, 1.5, True)
Call = Callable[[torch.Tensor, torch.Tensor], Any]


def _calls() -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for name in ALONE:
        calls[name] = lambda a, b, name=name: getattr(torch, name)(a)
    for name in PAIRS:
        calls[f"{name} of two"] = lambda a, b, name=name: getattr(torch, name)(a, b)
    for name, number in itertools.product((*WITH_NUMBERS, "rsub"), NUMBERS):
        calls[f"{name} and {number}"] = lambda a, b, name=name, number=number: getattr(torch, name)(a, number)
    for name, number in itertools.product(("add", "sub", "rsub"), (2, 1.5, True)):
        calls[f"{name} alpha={number}"] = (
            lambda a, b, name=name, number=number: getattr(torch, name)(a, b, alpha=number))
        calls[f"{name} of a number, alpha={number}"] = (
            lambda a, b, name=name, number=number: getattr(torch, name)(a, 3, alpha=number))
    calls["where"] = lambda a, b: torch.where(a, b, b)
    calls["where of two"] = lambda a, b: torch.where(a != 0, a, b)
    calls["full_like"] = lambda a, b: torch.full_like(a, 1.5)
    calls["softmax"] = lambda a, b: a.softmax(0)
    calls["layer_norm"] = lambda a, b: torch.nn.functional.layer_norm(a, (3,))
    calls["product"] = lambda a, b: a.reshape(1, 3) @ b.reshape(3, 1)
    return calls


CALLS = _calls()


@pytest.mark.parametrize("name", CALLS)
def test_they_raise(name: str) -> None:
    call = CALLS[name]
    two = any(word in name for word in ("two", "alpha", "where", "product")) and "of a number" not in name

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        call(a, b)
        return a.clone()

    vanished = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for first, second in itertools.product(DTYPES, DTYPES):
            if not two and first is not second:
                continue
            a, b = torch.tensor([1, 0, 2]).to(first), torch.tensor([1, 1, 0]).to(second)
            try:
                function(a, b)
            except Exception:
                try:
                    to_static(function)(a, b)
                except Exception:
                    continue
                vanished.append((first, second))
    assert not vanished


@pytest.mark.parametrize("name", ("add", "sub", "rsub"))
@pytest.mark.parametrize("other", (1, 1.5, None))
@pytest.mark.parametrize("dtype", (torch.float32, torch.int64))
def test_an_alpha_that_only_the_run_knows(name: str, other: float | None, dtype: torch.dtype) -> None:
    alphas: tuple[Callable[[torch.Tensor], Any], ...] = (bool, float, int)

    def function(x: torch.Tensor, which: int) -> torch.Tensor:
        getattr(torch, name)(x, x if other is None else other, alpha=alphas[which](x.sum()))
        return x.clone()

    for which in range(len(alphas)):
        outcomes = []
        for call in (function, to_static(function)):
            try:
                outcomes.append(call(torch.ones(3, dtype=dtype), which).tolist())
            except RuntimeError as error:
                outcomes.append(str(error).split("\n")[0])
        assert outcomes[0] == outcomes[1], which
