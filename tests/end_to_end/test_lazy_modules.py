"""Modules that get their parameters at their first call: they get the ones that eager gives them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from runtime.errors import Dy2StaticError


class Net(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        y = self.inner(x)
        if y.sum() > 0:
            y = y * 2
        return y


class Twice(Net):
    def forward(self, x: Any) -> Any:
        for _ in range(2):
            x = self.inner(x)
        return x


class OnAPath(Net):
    def forward(self, x: Any) -> Any:
        return self.inner(x) if x.sum() > 0 else x


class AfterRandomNumbers(Net):
    def forward(self, x: Any) -> Any:
        return self.inner(x + torch.rand(()))


MAKERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: Net(nn.LazyLinear(3)), (4, 5)),
    "twice": (lambda: Twice(nn.LazyLinear(5)), (4, 5)),
    "several": (lambda: Net(nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))), (4, 5)),
    "conv": (lambda: Net(nn.LazyConv1d(3, 1)), (2, 5, 4)),
    "norm": (lambda: Net(nn.Sequential(nn.LazyConv2d(3, 2), nn.LazyBatchNorm2d())), (2, 5, 4, 4)),
    "transposed": (lambda: Net(nn.LazyConvTranspose1d(3, 2)), (2, 5, 4)),
}


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("name", MAKERS)
def test_as_eager(name: str) -> None:
    make, shape = MAKERS[name]
    x = torch.randn(shape)
    found = []
    for convert in (lambda net: net, dy2static.to_static):
        torch.manual_seed(0)
        net = convert(make())
        results = [net(x), net(x - 1)]
        sum(result.square().sum() for result in results).backward()
        state = {key: value.clone() for key, value in net.state_dict().items()}
        found.append((results, [p.grad for p in net.parameters()], state, torch.rand(())))
    torch.testing.assert_close(*found)


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize("cls", [OnAPath, AfterRandomNumbers])
def test_where_eager_makes_them_in_the_middle(cls: Any) -> None:
    net = cls(nn.LazyLinear(5))
    with pytest.raises(Dy2StaticError, match="LazyLinear has no parameters yet") as error:
        dy2static.to_static(copy.deepcopy(net))(torch.ones(2, 5))
    assert error.value.code == "D2S219"
    net(torch.ones(2, 5))
    assert dy2static.to_static(net)(torch.ones(2, 5)).shape == (2, 5)
