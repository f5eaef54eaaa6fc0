"""``torch.autograd.grad`` asked for inside the backward of an ``autograd.Function``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function, grad

from tests.oracle import check


class Asks(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            (w,) = grad((z**3).sum(), z)
        return g * w


class AsksOnAPath(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        w = x
        if x.sum() > 0:
            with torch.enable_grad():
                z = x.detach().requires_grad_()
                (w,) = grad((z**3).sum(), z)
        return g * w


FUNCTIONS = [Asks, AsksOnAPath]


def straight(function: Any, x: torch.Tensor) -> Any:
    return function.apply(function.apply(x))


def in_a_branch(function: Any, x: torch.Tensor) -> Any:
    r = x * 1
    if x.sum() > 0:
        r = function.apply(r)
    return r


def in_a_loop(function: Any, x: torch.Tensor) -> Any:
    while x.sum() > 0:
        x = function.apply(x) - 20
    return x


def asked_inside(function: Any, x: torch.Tensor) -> Any:
    r = x * 1
    if x.sum() > 0:
        r = function.apply(r)
    (g,) = grad(r.sum(), x, retain_graph=True)
    return g, r * g


def step_inside(function: Any, x: torch.Tensor) -> Any:
    w = x.detach().requires_grad_()
    r = w * 1
    if x.sum() > 0:
        r = function.apply(r)
    r.sum().backward()
    return w.grad, x * 2


@pytest.mark.parametrize("program", [straight, in_a_branch, in_a_loop, asked_inside, step_inside])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_asked_for_inside(program: Callable[..., Any], function: Any) -> None:
    def run(x: torch.Tensor) -> Any:
        return program(function, x)

    check(run, *((torch.tensor(values).requires_grad_(),) for values in ([1.0, 2.0], [-1.0, -2.0], [0.5, -0.25])))
