"""Which results are one object, or an argument itself, where some of them have a gradient and others none."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static


def branch(x: Any, y: Any) -> Any:
    z = x
    if x.sum() > 0:
        z = y
    return z


def items(x: Any, y: Any) -> Any:
    values = [x]
    if x.sum() > 0:
        values = [y, x]
    return values[0], values


def entry(x: Any, y: Any) -> Any:
    found = {"a": x, "b": y}
    if x.sum() > 0:
        found["a"] = y
    return found["a"], found


def early(x: Any, y: Any) -> Any:
    if x.sum() > 0:
        return y, x * 2
    return x, y


def detached(x: Any, y: Any) -> Any:
    z = y.detach() if x.sum() > 0 else y
    w = x if x.sum() > 0 else x.detach()
    return z, w


def grown(x: Any, y: Any) -> Any:
    values = []
    for i in range(int(x.abs().sum())):
        values.append(x if i % 2 else y)
        if x.sum() > 0:
            values.append(x * 2)
    return values


def one_twice(x: Any, y: Any) -> Any:
    values = []
    z = x * 2
    for i in range(int(x.abs().sum())):
        if i == 1:
            z = y * 3
        values.append(z)
        values.append(z.detach() if i % 2 else z)
    return values


def two_lists(x: Any, y: Any) -> Any:
    first, second = [], []
    for i in range(int(x.abs().sum())):
        z = x * i
        first.append(z)
        second.append(z if x.sum() > 0 else y)
    return first, second


def two_results(x: Any, y: Any) -> Any:
    z = x * 2
    w = z if x.sum() > 0 else y
    return z, w, w


def a_result_and_a_list(x: Any, y: Any) -> Any:
    z = x * 2
    values = []
    for i in range(int(x.abs().sum())):
        values.append(z if i % 2 else y)
    return z, values


def without_history(x: Any, y: Any) -> Any:
    values = []
    for _ in range(int(x.abs().sum())):
        with torch.no_grad():
            z = x + 1
        values.append(z)
        values.append(z.detach())
        values.append(z)
    return values


FUNCTIONS = [
    branch, items, entry, early, detached, grown, one_twice, two_lists, two_results,
    a_result_and_a_list, without_history,
]  # fmt: skip


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in (value.values() if isinstance(value, dict) else value) for tensor in _tensors(item)]


def _seen(function: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
    """Which results and arguments are one object, and which need a gradient."""
    tensors = [*_tensors(function(x, y)), x, y]
    return [[one is other for other in tensors] for one in tensors], [one.requires_grad for one in tensors]


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_one_object(function: Any, tmp_path: Path) -> None:
    static = dy2static.to_static(function)
    for sign, of_x, of_y in itertools.product((1.0, -1.0), (False, True), (False, True)):
        x = (torch.tensor([1.0, 2.0]) * sign).requires_grad_(of_x)
        y = torch.ones(2).requires_grad_(of_y)
        where = f"x {sign}, requires_grad {of_x} and {of_y}"
        assert _seen(static, x, y) == _seen(function, x, y), where
        path = tmp_path / f"{sign}{of_x}{of_y}.d2s"
        dy2static.save(static, path)
        loaded = dy2static.load(path)
        assert _seen(loaded, x, y) == _seen(function, x, y), f"loaded, {where}"
