"""``torch.nn.utils``: hooks that store a weight to their module at each call (weight_norm, spectral_norm, pruning), and
parametrizations that compute one when it is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.utils import parametrizations, prune

from tests.oracle import check_module


def _pruned(layer: torch.nn.Module) -> None:
    prune.l1_unstructured(layer, "weight", 0.5)


def _pruned_twice(layer: torch.nn.Module) -> None:
    prune.l1_unstructured(layer, "weight", 0.3)
    prune.random_unstructured(layer, "weight", 2)


CHANGES: dict[str, Callable[[torch.nn.Module], Any]] = {
    "weight_norm": torch.nn.utils.weight_norm, "spectral_norm": torch.nn.utils.spectral_norm, "pruned": _pruned,
    "pruned twice": _pruned_twice, "parametrizations.weight_norm": parametrizations.weight_norm,
    "parametrizations.spectral_norm": parametrizations.spectral_norm,
    "parametrizations.orthogonal": parametrizations.orthogonal,
}  # fmt: skip


class Net(torch.nn.Module):
    def __init__(self, change: Callable[[torch.nn.Module], Any], where: str) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the older of them are deprecated
            change(self.layer)
        self.where = where

    def forward(self, x: torch.Tensor) -> Any:
        if self.where == "straight":
            x = self.layer(self.layer(x))
        elif self.where == "branch":
            if x.sum() > 0:
                x = self.layer(x)
        else:
            for _ in range(int(x.sum().abs()) % 4):
                x = self.layer(x)
        return x, self.layer.weight


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_they_do_at_each_call(change: str, train: bool) -> None:
    calls = [((sign * torch.ones(2, 3)).requires_grad_(),) for sign in (1, -1, 1, -1)]
    check_module(lambda: Net(CHANGES[change], "straight").train(train), *calls)


@pytest.mark.parametrize("where", ["branch", "loop"])
@pytest.mark.parametrize("change", CHANGES)
def test_on_paths(change: str, where: str) -> None:
    with torch.no_grad():
        check_module(lambda: Net(CHANGES[change], where), *[(sign * torch.ones(2, 3),) for sign in (1, -1, 1, -1)])
