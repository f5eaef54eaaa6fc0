"""Derivative formulas that take another way for other sizes (a sum over one element): a Program with open sizes has its
halves for each way."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import dy2static
from dy2static import InputSpec, to_static
from tests.oracle import same

OPERATORS = {
    "cumsum": lambda x: x.cumsum(0), "cumprod": lambda x: x.cumprod(0), "var": lambda x: x.var(),
    "std": lambda x: x.std(), "std_mean": lambda x: torch.std_mean(x, correction=0)[0], "prod": lambda x: x.prod(0),
    "kron": lambda x: torch.kron(x, x), "rows": lambda x: torch.outer(x, x).prod(1), "norm": lambda x: x.norm(),
    "rfft": lambda x: torch.fft.rfft(x).abs(), "trapezoid": lambda x: torch.cumulative_trapezoid(x),
    "det": lambda x: torch.outer(x, x + 1).det(), "softmax": lambda x: torch.softmax(x, 0),
    "mean": lambda x: x.mean(), "logsumexp": lambda x: x.logsumexp(0),
    "rows_var": lambda x: torch.outer(x, x).var(1), "rows_std": lambda x: torch.outer(x, x).std(1, correction=2),
    "var_mean": lambda x: sum(torch.var_mean(x)),
}  # fmt: skip
SIZES = [(4, 1, 2, 5, 3, 6), (2, 1, 3), (4, 3, 1, 2), (1, 2, 3)]


def gradient(function, size):
    x = (torch.arange(1.0, size + 1) / 3).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # var of one element
        return torch.autograd.grad(function(x).sum(), x)[0]


@pytest.mark.parametrize("options", [{}, {"backend": "c"}], ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_live(operator, sizes, options):
    def f(x):
        r = operator(x)
        if x.sum() > 100:
            r = r * 2
        return r

    static = to_static(f, **options)
    for size in sizes:
        same(gradient(static, size), gradient(f, size), tolerance=1e-5)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_in_a_branch(operator):
    def f(x):
        return operator(x) if x.sum() > -100 else x.sum()

    static = to_static(f)
    for size in SIZES[0]:
        same(gradient(static, size), gradient(f, size), tolerance=1e-5)


def test_in_a_loop():
    def f(x):
        while x.sum() < 10:
            x = x.cumsum(0) + 1
        return x

    static = to_static(f)
    for size in SIZES[0]:
        same(gradient(static, size), gradient(f, size), tolerance=1e-5)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        h = self.linear(x)
        while h.abs().max() > 1:
            h = h / 2
        return h.cumsum(0) + h.std(0, unbiased=False)


@pytest.mark.parametrize("batches", [(4, 1, 3), (1, 3, 2)], ids=str)
def test_a_module_from_a_file(batches, tmp_path):
    torch.manual_seed(0)
    module = Normed()
    path = tmp_path / "normed.d2s"
    dy2static.save(module, path, input_spec=[InputSpec([None, 2])])
    loaded = dy2static.load(path)
    for batch in batches:
        x = torch.randn(batch, 2)
        grads = [torch.autograd.grad(one(x).pow(3).sum(), list(one.parameters())) for one in (module, loaded)]
        same(grads[1], grads[0], tolerance=1e-5)


@pytest.mark.parametrize("operator,most", [("cumsum", 3), ("prod", 3), ("var", 3), ("cumprod", 16)])
def test_there_are_few_of_them(operator, most):
    """One for all sizes of which what it assumes holds; where each size has its own, autograd does the rest."""
    function = OPERATORS[operator]

    def f(x):
        r = function(x)
        return r * 2 if x.sum() > 100 else r

    static = to_static(f)
    for size in (3, 5, 1, 2, *range(4, 24), 5, 1, 23, 3):
        same(gradient(static, size), gradient(f, size), tolerance=1e-5)
    made = [one.ready.runner for one in static._dispatch.cache.all()]
    assert all(len(one._halves) <= most for one in made) and sum(len(one._halves) for one in made) > 0
    if most < 16:
        assert all(one is not None for runner in made for one in runner._halves.values())
