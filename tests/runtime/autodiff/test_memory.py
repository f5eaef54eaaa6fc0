"""What a run keeps: as long as eager keeps it, and no longer; nothing waits for Python to look for cycles."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from benchmarks.memory import allocated
from dy2static import to_static


def chain(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = x
    for _ in range(6):
        h = torch.tanh(h * 1.5 + 0.1)
        h = F.gelu(h)
        h = h * torch.sigmoid(h)
    return h.sum()


def normalized(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = x
    for _ in range(4):
        h = F.softmax(F.silu(F.layer_norm(F.gelu(h), (x.shape[-1],))), -1)
    return (h * x).sum()


def in_place(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = x * 1.0
    for _ in range(6):
        h += 1.0
        h *= 0.5
        h = torch.sin(h)
    return h.sum()


def looped(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = x
    for _ in range(n.item()):
        h = torch.tanh(h * 1.5 + 0.1)
    return h.square().sum()


def branched(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = torch.sin(x)
    if h.sum() > 0:
        h = torch.tanh(h) * h
    else:
        h = torch.sigmoid(h) * h
    return torch.exp(h).sum()


def listed(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    hs = []
    h = x
    for _ in range(n.item()):
        h = torch.tanh(h)
        hs.append(h)
    return torch.stack(hs).square().sum()


PROGRAMS = [chain, normalized, in_place, looped, branched, listed]


def step(run: Callable[..., Any], road: str, x: torch.Tensor, n: torch.Tensor) -> None:
    """One call, and what the road asks of its gradient."""
    if road == "no_grad":
        with torch.no_grad():
            run(x, n)
    elif road == "create_graph":
        (grad,) = torch.autograd.grad(run(x, n), x, create_graph=True)
        if grad.requires_grad:
            torch.autograd.grad(grad.square().sum(), x, allow_unused=True)
    elif road == "hooks":
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            run(x, n).backward()
    else:
        result = run(x, n)
        if road == "retained":
            result.backward(retain_graph=True)
        if road != "no backward":
            result.backward()
    x.grad = None


ROADS = ["backward", "no backward", "retained", "no_grad", "create_graph", "hooks"]


@pytest.mark.parametrize("function", PROGRAMS)
def test_nothing_waits_for_the_collector(function: Callable[..., Any]) -> None:
    converted = to_static(function)
    x, n = torch.randn(8, 8).requires_grad_(), torch.tensor(5)
    for _ in range(4):
        step(converted, "backward", x, n)
    for road in ROADS:
        step(converted, road, x, n)
    gc.collect()
    gc.freeze()  # what is there already is looked at no more
    gc.disable()
    try:
        before = _tensors()
        left = {}
        for road in ROADS:
            step(converted, road, x, n)
            left[road] = _tensors() - before
        assert left == dict.fromkeys(ROADS, 0)
    finally:
        gc.enable()
        gc.unfreeze()


def _tensors() -> int:
    return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())


@pytest.mark.parametrize("function", PROGRAMS)
def test_the_peak_is_at_most_eagers(function: Callable[..., Any]) -> None:
    x, n = torch.randn(256, 256).requires_grad_(), torch.tensor(6)
    peaks = {}
    for name, road in {"eager": function, "program": to_static(function)}.items():
        for _ in range(2):
            road(x, n).backward()
            x.grad = None
        peaks[name] = allocated(lambda road=road: road(x, n).backward())
        x.grad = None
    assert peaks["program"] <= peaks["eager"] + 4096, peaks
