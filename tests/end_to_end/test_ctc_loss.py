"""``ctc_loss``: what it computes on the way has sizes that depend on data, its result has not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.oracle import check

TARGETS = torch.tensor([[1, 2, 4], [3, 3, 0]])
LENGTHS = {"numbers": ((10, 9), (3, 2)), "tensors": (torch.tensor([10, 9]), torch.tensor([3, 2]))}


def batch(seed: int) -> torch.Tensor:
    return torch.randn(10, 2, 5, generator=torch.Generator().manual_seed(seed)).requires_grad_()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("one_after_another", [False, True])
def test_batches(one_after_another: bool, lengths: str, reduction: str) -> None:
    targets = torch.cat([TARGETS[0], TARGETS[1, :2]]) if one_after_another else TARGETS
    given, wanted = LENGTHS[lengths]

    def loss(x: Any) -> Any:
        return F.ctc_loss(x.log_softmax(-1), targets, given, wanted, reduction=reduction, zero_infinity=True)

    check(loss, (batch(0),), (batch(1),), tolerance=1e-6, gradient_tolerance=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_one_sequence(reduction: str) -> None:
    def loss(x: Any, target: Any) -> Any:
        return F.ctc_loss(x.log_softmax(-1), target, (10,), (3,), reduction=reduction)

    check(loss, *((batch(seed)[:, 0].detach().requires_grad_(), TARGETS[0]) for seed in range(2)), tolerance=1e-6,
          gradient_tolerance=1e-5)  # fmt: skip


def test_lengths_of_each_call_on_a_path() -> None:
    def loss(x: Any, given: Any, wanted: Any) -> Any:
        if x.sum() > 0:
            return F.ctc_loss(x.log_softmax(-1), TARGETS, given, wanted)
        return torch.nn.CTCLoss(reduction="sum")(x.log_softmax(-1), TARGETS, given, wanted)

    calls = [(batch(seed), torch.tensor([10, 9 - seed]), torch.tensor([3, 1 + seed % 2])) for seed in range(4)]
    check(loss, *calls, tolerance=1e-6, gradient_tolerance=1e-5)
