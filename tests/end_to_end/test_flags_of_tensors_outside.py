"""``requires_grad_()`` inside, of parameters, buffers and globals: done once, as eager's second call finds it done."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check_module

CALLS = [[sign * torch.ones(rows, 3)] for sign, rows in ((1, 2), (-1, 2), (1, 4))]


class _LossOfZero(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.register_buffer("zero", torch.zeros(()), persistent=False)

    def forward(self, x):
        y = self.inner(x)
        loss = self.zero
        if self.training:
            loss.requires_grad_()
        if y.sum() > 0:
            loss = loss + y.mean()
        return y, loss, loss.requires_grad


class _Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        self.encoder.requires_grad_(False)
        return self.head(self.encoder(x))


class _FrozenOneByOne(_Frozen):
    def forward(self, x):
        for parameter in self.encoder.parameters():
            parameter.requires_grad = False
        return self.head(self.encoder(x))


@pytest.mark.parametrize("make", [_LossOfZero, _Frozen, _FrozenOneByOne])
def test_as_eager_does(make):
    check_module(make, *CALLS)


def _used(layer, x):
    y = layer.weight * 2
    layer.weight.requires_grad_(False)
    return x @ y


def _viewed(layer, x):
    row = layer.weight[0]
    layer.weight.requires_grad_(False)
    return x * row


def _asked(layer, x):
    before = layer.weight.requires_grad
    layer.weight.requires_grad_(False)
    return x @ layer.weight, before


def _on_a_path(layer, x):
    if x.sum() > 0:
        layer.weight.requires_grad_(False)
    return layer(x)


def _there_and_back(layer, x):
    layer.requires_grad_(False)
    y = layer(x)
    layer.requires_grad_(True)
    return y


@pytest.mark.parametrize("function", [_used, _viewed, _asked, _on_a_path, _there_and_back], ids=lambda f: f.__name__)
def test_what_was_read_before_is_refused_and_stays_as_it_was(function):
    layer = nn.Linear(3, 3)
    with pytest.raises(TraceError, match="D2S213"):
        dy2static.to_static(lambda x: function(layer, x))(torch.ones(2, 3))
    assert layer.weight.requires_grad and layer.bias.requires_grad


def test_a_tensor_without_gradients_raises_what_eager_raises():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("counts", torch.ones(3, dtype=torch.long))

        def forward(self, x):
            self.counts.requires_grad_()
            return x * self.counts

    check_module(Counts, *CALLS[:1])
