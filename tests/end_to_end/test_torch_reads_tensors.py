"""PyTorch's own Python functions that decide on tensors: where one does, the trace begins again and converts it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver, get_default_qat_qconfig, prepare_qat

from dy2static import not_to_static, to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check, check_module


def cumulative() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(3, momentum=None), nn.Linear(3, 2)).train()


def test_a_moving_average_counts_batches() -> None:
    calls = [(torch.randn(5, 3, generator=torch.Generator().manual_seed(seed)),) for seed in range(4)]
    check_module(cumulative, *calls, tolerance=1e-6)


def likelihood(mean: Any, target: Any, variance: Any) -> Any:
    return F.gaussian_nll_loss(mean, target, variance), nn.GaussianNLLLoss(full=True)(mean, target, variance)


def on_a_path(mean: Any, target: Any, variance: Any) -> Any:
    if mean.sum() > 0:
        return F.gaussian_nll_loss(mean, target, variance)
    return mean


@pytest.mark.parametrize("function", [likelihood, on_a_path])
def test_a_condition_that_raises(function: Any) -> None:
    """The ValueError for a negative variance is the Program's, also where gradients are computed."""
    mean, target = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 2.0])
    calls = [(mean * sign, target, variance) for sign in (1, -1)
             for variance in (torch.ones(2), torch.tensor([1.0, -1.0]), torch.full((2,), 0.5))]  # fmt: skip
    check(function, *calls, tolerance=1e-6)


def test_clipping_asks_whether_the_norm_is_finite() -> None:
    def f(x: Any, limit: Any) -> Any:
        total = torch.nn.utils.get_total_norm([x, x * 2], error_if_nonfinite=True)
        return x * torch.clamp(limit / (total + 1e-6), max=1.0)

    check(f, *((torch.tensor(values), torch.tensor(2.0)) for values in ([3.0, 4.0], [0.1, 0.2], [float("inf"), 1.0])))


@pytest.mark.skipif(not hasattr(nn, "LinearCrossEntropyLoss"), reason="newer versions of PyTorch have it")
@pytest.mark.parametrize("frozen", [False, True])
def test_a_function_that_asks_which_gradients_are_needed(frozen: bool) -> None:
    """It tells its kernel which to compute; the kernel's formula gives those."""

    def make() -> nn.Module:
        return nn.LinearCrossEntropyLoss(5, 4, reduction="sum").requires_grad_(not frozen)

    target = torch.tensor([0, 1, 3])
    calls = [(torch.randn(3, 5, generator=torch.Generator().manual_seed(seed)).requires_grad_(), target)
             for seed in range(2)]  # fmt: skip
    check_module(make, *calls, tolerance=1e-6, gradient_tolerance=1e-5)
    check(lambda x, weight: F.linear_cross_entropy(x, weight, target), *(
        (x, torch.ones(4, 5).requires_grad_()) for x, _ in calls), tolerance=1e-6, gradient_tolerance=1e-5)


def test_what_is_excluded_stays_so() -> None:
    @not_to_static
    def excluded(*given: Any) -> Any:
        return F.gaussian_nll_loss(*given)

    with pytest.raises(Dy2StaticError, match="D2S212"):
        to_static(lambda *given: excluded(*given))(torch.ones(2), torch.ones(2), torch.ones(2))


def test_the_trace_begins_again_once() -> None:
    static = to_static(likelihood)
    for _ in range(2):
        static(torch.ones(2), torch.ones(2), torch.ones(2))
    assert len(static.programs) == 1


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.last = nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.first(x))
        if x.mean() > 0.3:
            x = x / 2
        return self.last(x)


def with_fake_quantizer() -> nn.Module:
    torch.manual_seed(0)
    net = Small()
    net.act = nn.Sequential(net.act, FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255))
    return net


def prepared() -> nn.Module:
    torch.manual_seed(0)
    net = Small().train()
    net.qconfig = get_default_qat_qconfig("fbgemm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch recommends torchao
        made: nn.Module = prepare_qat(net)
    for part in made.modules():
        vars(part).pop("qconfig", None)  # it made the quantisers, and no two are equal
    return made


@pytest.mark.parametrize("make", [with_fake_quantizer, prepared])
def test_training_for_quantised_weights(make: Any) -> None:
    calls = [(torch.randn(5, 4, generator=torch.Generator().manual_seed(seed)) * (seed + 1),) for seed in range(3)]
    check_module(make, *calls)
