"""Arguments and parameters written under ``no_grad``, or through ``detach()``: they stay what they are in the graph."""

from __future__ import annotations

import pytest
import torch

import dy2static
from tests.oracle import check, check_module


def through_detach(x):
    v = x.detach()
    if x.sum() > 0:
        v.mul_(0.5)
    return x * 2


def under_no_grad(x):
    with torch.no_grad():
        x.mul_(2)
    return x * 3


def through_data(x):
    x.data.mul_(2)
    return x * 3


def in_the_graph(x):
    if x.sum() > 0:
        x.fill_(1.0)
    return x * 1


FUNCTIONS = [through_detach, under_no_grad, through_data, in_the_graph]


@pytest.mark.parametrize("path", ["program", "autograd"])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_leaves(f, grad, path):
    check(f, *[(torch.full((3,), value, requires_grad=grad),) for value in (1.0, -1.0, 2.0)], paths=(path,))


@pytest.mark.parametrize("value", [1.0, -1.0])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_with_a_history(f, value):
    seen = []
    for function in (f, dy2static.to_static(f)):
        x = torch.full((3,), value, requires_grad=True)
        h = x * 2
        y = function(h)
        (y.sum() + (h * h).sum()).backward()
        seen.append((y.tolist(), h.tolist(), x.grad.tolist()))
    assert seen[0] == seen[1]


class _Clamps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3,), 2.0))
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("running", torch.zeros(3))

    def forward(self, x):
        if x.sum() > 0:
            with torch.no_grad():
                self.weight.clamp_(-1, 1)
                self.linear.weight.mul_(0.5)
            self.linear.bias.data.add_(1)
        self.running = x.detach().clone()
        self.running.mul_(0.5)
        return self.linear(x).sum() + (self.weight * x).sum()


@pytest.mark.parametrize("grad", [True, False])
def test_parameters(grad):
    check_module(_Clamps, *[(torch.full((3,), value, requires_grad=grad),) for value in (1.0, -1.0, 2.0)])
