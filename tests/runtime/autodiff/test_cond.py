"""The gradient of a branch: only the path taken gives gradients, the others None."""

import pytest
import torch


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


def r(*shape, grad=True):
    return torch.randn(*shape, requires_grad=grad)


@pytest.mark.parametrize("seed", range(4))
def test_each_path(same_gradients, seed):
    def f(x, w, v):
        if x.sum() > 0:
            y = x @ w
        else:
            y = (x * 2) @ v
        return y.sum(), y

    torch.manual_seed(seed)
    same_gradients(f, r(3, 3), r(3, 3), r(3, 3))


@pytest.mark.parametrize("seed", range(4))
def test_a_result_that_needs_no_gradient_on_one_path(same_gradients, seed):
    def f(x, w):
        y = torch.ones(3)
        if x.sum() > 0:
            y = y * w
        return y, y * 2, x

    torch.manual_seed(seed)
    same_gradients(f, r(3, grad=False), r(3))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("use", [None, [0], [1]])
def test_only_some_results_are_used(same_gradients, seed, use):
    def f(x, w, v):
        if x.sum() > 0:
            a, b = x @ w, x @ v
        else:
            a, b = x + w, x
        return a.sin(), b.cos()

    torch.manual_seed(seed)
    same_gradients(f, r(3, 3), r(3, 3), r(3, 3), use=use)


@pytest.mark.parametrize("seed", range(3))
def test_early_return_and_raise(same_gradients, seed):
    def f(x, w):
        if x.sum() > 1000:
            raise ValueError("too big")
        if x.sum() > 0:
            return x @ w
        return (x - w).square()

    torch.manual_seed(seed)
    same_gradients(f, r(3, 3), r(3, 3))


@pytest.mark.parametrize("seed", range(3))
def test_dropout_on_one_path(same_gradients, seed):
    def f(x, w):
        if x.sum() > 0:
            y = torch.nn.functional.dropout(x @ w, 0.4)
        else:
            y = torch.nn.functional.dropout(x, 0.2) + w
        return torch.nn.functional.dropout(y, 0.5)

    torch.manual_seed(seed)
    same_gradients(f, r(4, 4), r(4, 4), seed=seed)


def test_sizes_that_differ_between_paths(same_gradients):
    def f(x, w):
        if x.sum() > 0:
            y = torch.cat([x, x * w])
        else:
            y = x[:1]
        return (y * y).sum(), y

    for scale in (1.0, -1.0):
        same_gradients(f, (torch.ones(3) * scale).requires_grad_(), r(3))


@pytest.mark.parametrize("seed", range(3))
def test_layouts_that_differ_between_paths(same_gradients, seed):
    def f(x, w):
        y = x @ w
        if y.sum() > 0:
            z = y.t()
        else:
            z = y
        return y[0] * 1, z, z.t().contiguous(), x.view(-1)

    torch.manual_seed(seed)
    same_gradients(f, r(3, 3), r(3, 3))


@pytest.mark.parametrize("index", range(3))
def test_a_choice_among_layers(same_gradients, index):
    class Choose(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])

        def forward(self, x, k):
            return torch.tanh(self.layers[k.item()](x))

    same_gradients(Choose(), r(2, 4), torch.tensor(index))


def test_an_expanded_gradient_inside(same_gradients):
    def f(x, w):
        h = x.sum(0, keepdim=True).expand(3, 4)
        if h.sum() > -1000:
            h = h * w
        return h.sum()

    same_gradients(f, r(3, 4), r(3, 4))


def test_data_dependent_sizes(same_gradients):
    def f(x, w):
        y = x[x > 0]
        if y.sum() > 1:
            y = y * w.sum()
        return y, y.sum()

    for seed in range(3):
        torch.manual_seed(seed)
        same_gradients(f, r(6), r(3))
