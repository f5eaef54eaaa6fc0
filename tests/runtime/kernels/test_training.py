"""The whole road with ``backend="cuda"`` and kernels run on the CPU: converted functions and modules against eager,
results and gradients; and cases of the conformance suite."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from dy2static import to_static
from tests import devices
from tests.conformance.suite import all_cases
from tests.runtime.kernels.host import Host


class Block(nn.Module):
    """A part of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.LayerNorm(width)
        self.second = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 3 * width)
        self.back = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention and two layers, with a branch on a value."""
        q, k, v = self.mix(self.first(x)).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        x = x + self.back(torch.softmax(scores * 0.9 + 0.1, -1) @ v)
        if x.mean() > 1000:
            x = x * 0.5
        return x + self.down(functional.gelu(self.up(self.second(x)))) * 0.5


def _cell(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    for t in range(x.shape[0]):
        i, f, g, o = (torch.cat([x[t], h], -1) @ w).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def _loss(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(x * 2.0 + 0.5, target) + functional.silu(x).pow(2).mean(-1).sum()


def _train(module: nn.Module, call: Callable[[torch.Tensor], torch.Tensor], calls: int) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    generator = devices.generator(0)
    found = []
    for _ in range(calls):
        x = torch.randn(2, 5, 8, generator=generator, dtype=next(module.parameters()).dtype)
        loss = call(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return found + [one.detach() for one in module.parameters()]


@pytest.mark.parametrize("dtype", [
    torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow), torch.bfloat16,
])  # fmt: skip
def test_a_module_trains_as_eager(host: Host, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    module = Block(8).to(dtype)
    twin = copy.deepcopy(module)
    static = to_static(twin, backend="cuda")
    rounding = {torch.float32: 1e-5, torch.float64: 1e-10, torch.bfloat16: 3e-2}[dtype]
    for got, expected in zip(_train(twin, static, 3), _train(module, module, 3)):
        torch.testing.assert_close(got, expected, rtol=rounding, atol=rounding)
    assert len(host.launches) > 20
    report = str(static.forward.compiled[0])
    assert "kernels" in report and "with gradients" in report


def test_a_recurrent_cell(host: Host) -> None:
    """What is between the products of a step is one kernel, backward few."""
    args = [torch.randn(6, 3, 4), torch.randn(3, 5), torch.randn(3, 5), torch.randn(9, 20)]
    static = to_static(_cell, backend="cuda")
    results = []
    for call in (static, _cell):
        given = [one.clone().requires_grad_() for one in args]
        h, c = call(*given)
        (h.sum() + c.square().sum()).backward()
        results.append([h, c, *(one.grad for one in given)])
    for got, expected in zip(*results):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert host.launches


def test_a_loss(host: Host) -> None:
    x, target = torch.randn(7, 10), torch.randint(0, 10, (7,))
    static = to_static(_loss, backend="cuda")
    results = []
    for call in (static, _loss):
        given = x.clone().requires_grad_()
        loss = call(given, target)
        loss.backward()
        results.append([loss, given.grad])
    for got, expected in zip(*results):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


CASES = all_cases()


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", CASES[::60], ids=[case.id for case in CASES[::60]])
def test_cases(host: Host, case: object) -> None:
    """Some of what the slow test runs."""
    from tests.conformance.runner import run

    run(case, "cuda", 1e-5)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_every_case(host: Host, case: object) -> None:
    from tests.conformance.runner import run

    run(case, "cuda", 1e-5)  # type: ignore[arg-type]
