"""Sizes that only the run knows, and that eager takes as -1 or 1; what an operator says of sizes that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import dy2static
from tests.oracle import check


def number(n: int) -> torch.Tensor:
    return torch.tensor(n)


def values(grad: bool, *shape: int) -> torch.Tensor:
    return torch.linspace(-1, 2, torch.Size(shape).numel()).view(shape).requires_grad_(grad)


SHAPES: list[Callable[[torch.Tensor, int], Any]] = [
    lambda x, n: x.reshape(n, 3),
    lambda x, n: x.view(n, 3) * 2,
    lambda x, n: x.reshape(3, n).sum(0),
    lambda x, n: (x * 2).t().reshape(n, 2) + 1,
    lambda x, n: torch.reshape(x, (2, n)).softmax(1),
    lambda x, n: x.reshape(n * 2 + 1, 3).exp(),
]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_a_number_that_may_be_minus_one(shape: int, grad: bool) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        y = x * 0.5
        if n < 10:
            return SHAPES[shape](y, n.item())
        return y

    check(f, *((values(grad, 2, 3), number(n)) for n in (2, -1, 3, 4, 0, -2, 10)), tolerance=1e-6)


BROADCAST: list[Callable[[torch.Tensor, torch.Tensor], Any]] = [
    lambda x, t: x + t,
    lambda x, t: t * x - t,
    lambda x, t: torch.where(t > 0, x, t),
    lambda x, t: torch.addcmul(x, x, t),
    lambda x, t: (x * 1).mul_(t),
    lambda x, t: x.clamp(min=t) @ x.t(),
    lambda x, t: torch.lerp(x, x * 2, t * 0.5),
    lambda x, t: torch.complex(x, t).abs(),
    lambda x, t: torch.polar(x, t).real,
    lambda x, t: torch.linalg.cross(x, t),
]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("made", range(len(BROADCAST)))
def test_a_size_that_may_be_one(made: int, grad: bool) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        y = BROADCAST[made](x, torch.ones(n.item()))
        while y.sum() < 5:
            y = BROADCAST[made](x * 3, torch.ones(n.item())) + 5
        return y

    check(f, *((values(grad, 2, 3), number(n)) for n in (3, 1, 2)), tolerance=1e-6)


@pytest.mark.parametrize("grad", [True, False])
def test_results_that_nothing_reads(grad: bool) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        size = n.item()
        if x.sum() > -5:
            x + torch.ones(size)
            x.reshape(size - 4, 3)
            for _ in range(2):
                torch.stack([x, x[:size]])
        F.embedding(torch.tensor([size]), torch.ones(4, 2))
        return x * 2

    check(f, *((values(grad, 3), number(n)) for n in (3, 1, 2, 5, 4)))


def test_an_operator_speaks_before_a_test_of_its_sizes() -> None:
    def stack(x: torch.Tensor, n: torch.Tensor) -> Any:
        return torch.stack([x * 2, x[: n.item()]])

    def cat(x: torch.Tensor, n: torch.Tensor) -> Any:
        return torch.cat([x[None], x[None, : n.item()]])

    def known(x: torch.Tensor, n: int) -> Any:  # both are views of one memory
        return torch.cat([x[None], x[None, :n]])

    for grad in (True, False):
        for f in (stack, cat):
            check(f, *((values(grad, 3), number(n)) for n in (3, 2, 0)))
        check(known, (values(grad, 3), 3), (values(grad, 3), 2), (values(grad, 3), 0))


SUBSCRIPTS: list[Callable[[torch.Tensor, int], Any]] = [
    lambda x, n: x[n], lambda x, n: x[0, n], lambda x, n: x[0][n], lambda x, n: x[None, 1, ..., n],
    lambda x, n: x[n, 1:], lambda x, n: x.select(0, n), lambda x, n: x.select(1, n), lambda x, n: x[..., n, :],
]  # fmt: skip


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("which", range(len(SUBSCRIPTS)))
def test_subscripts_out_of_range(which: int, grad: bool, tmp_path: Path) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        return SUBSCRIPTS[which](x * 2, n.item()) + 1

    calls = [(values(grad, 2, 3), number(n)) for n in (1, -1, 4, -5)]
    check(f, *calls)
    specs = [dy2static.InputSpec([2, 3]), dy2static.InputSpec([], "int64")]
    dy2static.save(dy2static.to_static(f, input_spec=specs), tmp_path / "f.d2s")
    check(f, *calls, static=dy2static.load(tmp_path / "f.d2s"))


def test_a_write_out_of_range() -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        y = x * 1
        y[0, n.item()] = 2
        return y

    for grad in (True, False):
        check(f, *((values(grad, 2, 3), number(n)) for n in (1, 3, -4)))
