"""How operators lay out what they give, where sizes are open and operands do not lie plainly: formulas look at it."""

import pytest
import torch

from dy2static import to_static

W = torch.randn(3, generator=torch.Generator().manual_seed(0)).requires_grad_()


def one(x):
    if x.sum() > 0:
        x = x * 2
    t = (x * W).permute(0, 2, 1).reshape(x.shape[0], 3, 1, 3)
    return (torch.cat([t], 2).squeeze(2) @ torch.ones(3, 2)).sin()


def two(x):
    if x.sum() > 0:
        x = x * 2
    t = (x * W).permute(0, 2, 1).view(x.shape[0], 3, 1, 3)
    return torch.cat([t, t], 2).reshape(-1, 3) @ torch.ones(3, 2)


def last(x):
    if x.sum() > 0:
        x = x * 2
    t = (x * W)[:, :, None].to(memory_format=torch.channels_last)
    return torch.cat([t, t * 2], 1).reshape(x.shape[0], -1).cos()


def in_three_dimensions(x):
    if x.sum() > 0:
        x = x * 2
    t = (x * W).permute(0, 2, 1)[:, :, None, None]
    return torch.cat([t, t], 4).reshape(-1, 3).cos()


def unlike(x):
    if x.sum() > 0:
        x = x * 2
    t = (x * W).permute(0, 2, 1).view(x.shape[0], 3, 1, 3)
    return torch.cat([t, t.contiguous()], 3).reshape(-1, 3).cos()


@pytest.mark.parametrize("f", [one, two, last, in_three_dimensions, unlike], ids=lambda f: f.__name__)
def test_cat_of_tensors_whose_channels_are_innermost(f):
    static = to_static(f)
    for size in (4, 2, 5, 1, 3):
        x = torch.rand(size, 3, 3)
        given, expected = static(x), f(x)
        torch.testing.assert_close(given, expected)
        torch.testing.assert_close(torch.autograd.grad(given.square().sum(), W), torch.autograd.grad(
            expected.square().sum(), W))  # fmt: skip
