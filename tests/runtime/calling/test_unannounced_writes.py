"""Writes that autograd is not told of, as eager's norms write their statistics, and those that it counts."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

import dy2static
from dy2static import to_static
from runtime.autodiff import node

BACKENDS = ["interpreter", "c"]


def normed() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))


def evaluated_then_trained(model: Any) -> list[torch.Tensor]:
    """A backward in evaluation, after training has changed the statistics that it has kept."""
    torch.manual_seed(1)
    x = torch.randn(5, 4)
    model.eval()
    first = model(x).sin().sum()
    model.train()
    model(x + 1)
    first.backward()
    return [one.grad for one in model.parameters()]


@pytest.mark.parametrize("big", [0, 65_536], ids=["halves", "autograd"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backward_reads_the_statistics_that_there_are(
    backend: str, big: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "BIG", big)
    model = normed()
    expected = evaluated_then_trained(copy.deepcopy(model))
    for got, wanted in zip(evaluated_then_trained(to_static(model, backend=backend)), expected, strict=True):
        torch.testing.assert_close(got, wanted)


def counted(model: nn.Module, run: Any) -> dict[str, bool]:
    """Which buffers autograd counts a write of."""
    before = {name: one._version for name, one in model.named_buffers()}
    run(torch.ones(5, 4))
    return {name: one._version > before[name] for name, one in model.named_buffers()}


def test_versions_are_counted_as_in_eager(tmp_path: Path) -> None:
    model, plain = normed(), normed()
    static = to_static(model)
    expected = counted(plain, plain)
    assert expected == {"1.running_mean": False, "1.running_var": False, "1.num_batches_tracked": True}
    assert counted(model, static) == expected
    dy2static.save(static, tmp_path / "norm.d2s")
    loaded = dy2static.load(tmp_path / "norm.d2s")
    assert counted(loaded, loaded.train()) == expected


class Keeps(nn.Module):
    """Writes a buffer by an operator that autograd counts."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x * self.weight * self.scale).sum()
        if self.training:
            self.scale.mul_(2)
        return y


def test_a_counted_write_spoils_a_backward_as_in_eager() -> None:
    for model in (Keeps(), to_static(Keeps())):
        model.eval()
        first = model(torch.ones(3))
        model.train()
        model(torch.ones(3))
        with pytest.raises(RuntimeError, match="modified by an inplace operation|overwritten|written"):
            first.backward()


def test_statistics_of_an_ensemble_under_vmap() -> None:
    models = [normed()[1].train() for _ in range(2)]
    x, found = torch.randn(2, 5, 4), []
    for base in (copy.deepcopy(models[0]), to_static(copy.deepcopy(models[0]))):
        params, buffers = stack_module_state(copy.deepcopy(models))
        result = vmap(lambda p, b, x, base=base: functional_call(base, (p, b), (x,)))(params, buffers, x)
        found.append((result, *buffers.values()))
    for got, wanted in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(got, wanted)
