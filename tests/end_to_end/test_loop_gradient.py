"""The loop that hand-written control flow trains wrongly: a closed-over weight, and a start state without gradient."""

from __future__ import annotations

import pytest
import torch

import dy2static
from runtime.autodiff import gradient_path


def loop(W, x, n):
    h = torch.zeros(3, 4)
    i = torch.tensor(0)
    while i < n:
        h = torch.tanh(h @ W + x)
        i = i + 1
    return h.square().sum()


@pytest.fixture
def dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


def gradient(function, W, x, n):
    W = W.detach().requires_grad_()
    result = function(W, x, n)
    if not result.requires_grad:
        return result, None
    return result, torch.autograd.grad(result, W, allow_unused=True)[0]


@pytest.mark.parametrize("path", ["program", "autograd"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], indirect=True)
def test_gradient_of_the_weight(dtype, n, path):
    generator = torch.Generator().manual_seed(n)
    W, x = torch.randn(4, 4, generator=generator), torch.randn(3, 4, generator=generator)
    count = torch.tensor(n)
    expected, eager = gradient(loop, W, x, count)
    with gradient_path(path):
        result, found = gradient(dy2static.to_static(loop), W, x, count)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    assert torch.allclose(result, expected, rtol=0, atol=tolerance)
    assert (found is None) == (eager is None)
    if found is None:
        return
    assert (found - eager).abs().max() <= tolerance
    if dtype == torch.float64:
        step = 1e-6
        for row in range(4):
            for column in range(4):
                shift = torch.zeros(4, 4)
                shift[row, column] = step
                slope = (loop(W + shift, x, count) - loop(W - shift, x, count)) / (2 * step)
                assert abs(slope - found[row, column]) < 1e-6
