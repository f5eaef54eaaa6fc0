"""Hooks on results that one eager node gives: called with None where a gradient reaches only another of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd import Function

import dy2static
from dy2static import to_static
from tests.oracle import same


class Two(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


def both(x: torch.Tensor) -> Any:
    s, m = torch.std_mean(x)
    if x.sum() > 5:
        x = x + 1
    return s, m, x * 2


def one_is_used(x: torch.Tensor) -> Any:
    s, m = torch.std_mean(x)
    if x.sum() > 5:
        x = x + 1
    return s, m * 2, x * 2


def computed_from_another(x: torch.Tensor) -> Any:
    s, m = torch.std_mean(x)
    z = m * 2
    if x.sum() > 5:
        z = z.sin()
    return s, m, z


def of_a_function(x: torch.Tensor) -> Any:
    s, m = Two.apply(x)
    if x.sum() > 5:
        x = x + 1
    return s, m, x * 2


def of_another(x: torch.Tensor) -> Any:
    s, n = Two.apply(x)
    m, _ = Two.apply(x * 2)
    if x.sum() > 5:
        x = x + 1
    return s, m + n.sum() * 0, x * 2


def only_values(x: torch.Tensor) -> Any:
    s, places = x.sort()
    if x.sum() > 5:
        x = x + 1
    return s, x * 2, places


def q_and_r(x: torch.Tensor) -> Any:
    q, r = torch.linalg.qr(x.reshape(-1, 1))
    if x.sum() > 5:
        x = x + 1
    return q, r, x * 2


FAMILY = [both, one_is_used, computed_from_another, of_a_function, of_another, only_values, q_and_r]


def heard(function: Callable[..., Any], values: list[float], asked: int, answer: float | None) -> Any:
    x, log = torch.tensor(values).requires_grad_(), list[Any]()
    results = function(x)

    def hook(grad: torch.Tensor | None) -> Any:
        log.append(grad)
        return answer if grad is None else grad * 2

    for one in results[: 3 if results[2].requires_grad else 2]:
        one.register_hook(hook)
        one.register_hook(lambda grad: log.append("never")).remove()
    try:
        results[asked].sum().backward(retain_graph=True)
        results[asked].sum().backward(retain_graph=True)
        (results[0].sum() + results[1].sum()).backward()
    except RuntimeError as error:
        return [str(error), log]
    return [x.grad, log, all(list(one._backward_hooks.values()) == [hook] for one in results[:2])]


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("asked", [0, 1])
@pytest.mark.parametrize("answer", [None, 1.0])
@pytest.mark.parametrize("function", FAMILY)
def test_hooks_hear_of_the_others(
    function: Callable[..., Any], asked: int, answer: float | None, loaded: bool, tmp_path: Path
) -> None:
    road: Any = to_static(function)
    if loaded:
        dy2static.save(road, tmp_path / "f", input_spec=[torch.tensor([1.0, 2.0, 4.0]).requires_grad_()])
        road = dy2static.load(tmp_path / "f")
    for values in ([1.0, 2.0, 4.0], [1.0, 0.5, 2.0]):
        same(heard(road, values, asked, answer), heard(function, values, asked, answer), tolerance=1e-5)
