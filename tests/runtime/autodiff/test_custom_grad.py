"""Custom autograd functions inside branches and loops: their own backward, in line."""

import pytest
import torch


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


class Odd(torch.autograd.Function):
    """Its backward is not its derivative, so that nobody can compute it another way."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w, x + w

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        return 2 * x * g * w + h, g * x * x * 3


def r(*shape):
    return torch.randn(*shape, requires_grad=True)


@pytest.mark.parametrize("seed", range(3))
def test_in_a_loop_with_a_branch(same_gradients, seed):
    def f(x, w, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            if h.sum() > 0:
                h, k = Odd.apply(h, w)
                h = torch.tanh(h + k)
            else:
                h = h + w
            i = i + 1
        return h

    torch.manual_seed(seed)
    same_gradients(f, r(3), r(3), torch.tensor(3), numeric=False)


@pytest.mark.parametrize("use", [[0], [1], None])
def test_some_of_its_results(same_gradients, use):
    def f(x, w):
        a, b = Odd.apply(x, w)
        if x.sum() > 1000:
            a = a * 2
        return a, b

    same_gradients(f, r(3), r(3), numeric=False, use=use)


def test_a_straight_through_estimator(same_gradients):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.round(x)

        @staticmethod
        def backward(ctx, g):
            return g

    def f(x, n):
        for _ in range(n.item()):
            x = Round.apply(x * 1.7) + x
        return x

    same_gradients(f, r(5), torch.tensor(3), numeric=False)
