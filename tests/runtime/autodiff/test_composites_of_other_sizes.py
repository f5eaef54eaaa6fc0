"""Gradients of operators made of others, from one function over several sizes: no derivative may keep a size."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from dy2static import to_static

OPERATORS = {
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2.0),
    "chunk": lambda x: x.chunk(2, 1)[0] * x.mean(),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x * 2 + 1),
    "kl_div": lambda x: F.kl_div(x.log_softmax(1), x.softmax(1), reduction="batchmean"),
    "cov": lambda x: torch.cov(x), "group_norm": lambda x: F.group_norm(x, 2), "bilinear":
        lambda x: F.bilinear(x, x, torch.ones(2, 4, 4)),
    "unfold": lambda x: F.unfold(x[None, None], (2, 2)), "tensor_split": lambda x: torch.tensor_split(x, 2, 0)[0],
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x[None], 2), "renorm": lambda x: torch.renorm(x, 2, 0, 1.0),
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x.T, x]), "std_mean": lambda x: torch.std_mean(x)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients(name):
    def f(x):
        r = OPERATORS[name](x)
        return (r * 2 if x.sum() > 1e9 else r).sum()

    converted = to_static(f)
    for rows in (3, 5, 2, 7, 4):
        x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(rows)).requires_grad_()
        got, expected = (torch.autograd.grad(call(x), x) for call in (converted, f))
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
