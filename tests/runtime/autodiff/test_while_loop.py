"""The gradient of a loop: closed-over weights, start states without gradient, zero iterations, values born inside."""

import pytest
import torch


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


def r(*shape, grad=True):
    return torch.randn(*shape, requires_grad=grad)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_closed_over_weight_and_a_start_that_needs_no_gradient(same_gradients, n):
    def loop(W, x, n):
        h = torch.zeros(3, 4)
        i = torch.tensor(0)
        while i < n:
            h = torch.tanh(h @ W + x)
            i = i + 1
        return h.square().sum()

    same_gradients(loop, r(4, 4), r(3, 4, grad=False), torch.tensor(n))
    same_gradients(loop, r(4, 4), r(3, 4), torch.tensor(n))


@pytest.mark.parametrize("n", [0, 2])
@pytest.mark.parametrize("use", [None, [0], [1]])
def test_a_carried_value_that_is_not_used_leaves_its_weight_alone(same_gradients, n, use):
    def f(x, a, b, n):
        h = k = x
        i = torch.tensor(0)
        while i < n:
            h = torch.tanh(h @ a)
            k = torch.tanh(k @ b)
            i = i + 1
        return h, k

    same_gradients(f, r(3, 3), r(3, 3), r(3, 3), torch.tensor(n), use=use)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_value_first_bound_in_the_loop(same_gradients, n):
    def f(x, a, n):
        h = x
        i = torch.tensor(0)
        last = None
        while i < n:
            y = torch.tanh(h @ a)
            if y.sum() > 0:
                z = y * 2
                last = z
            h = y + x
            i = i + 1
        if last is not None:
            h = h + last
        return h

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_for_with_break(same_gradients, n):
    def f(x, w, n):
        h = x
        for t in range(n.item()):
            h = torch.tanh(h @ w) * (t + 1)
            if h.sum() > 3:
                break
        return h

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n))


def test_a_loop_until_it_converges_at_any_batch_size(same_gradients):
    def f(x, w):
        h = x
        while h.square().sum() > 1:
            h = torch.tanh(h @ w) * 0.5
            if h.sum() > 0:
                h = h - h.mean(0, keepdim=True)
        return h, h.sum(0)

    for batch in (2, 3, 5, 1):
        same_gradients(f, r(batch, 4), r(4, 4))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_tensor_that_grows(same_gradients, n):
    def f(x, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            h = torch.cat([h, h[-1:] * 1.1])
            i = i + 1
        return h

    same_gradients(f, r(2, 3), torch.tensor(n))


@pytest.mark.parametrize("seed", range(4))
def test_dropout_in_a_loop_with_a_branch(same_gradients, seed):
    def f(x, w, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            if h.sum() > 0:
                h = torch.nn.functional.dropout(h @ w, 0.4)
            else:
                h = torch.nn.functional.dropout(h, 0.2) + w
            i = i + 1
        return h

    torch.manual_seed(seed)
    same_gradients(f, r(4, 4), r(4, 4), torch.tensor(4), seed=seed)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_batch_norm_and_its_buffers(same_gradients, n):
    class Normed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)
            self.layer = torch.nn.Linear(4, 4)
            self.rare = torch.nn.Linear(4, 4)

        def forward(self, x, n):
            i = torch.tensor(0)
            while i < n:
                x = self.norm(self.layer(x))
                if x.sum() > 100:
                    x = self.rare(x)
                i = i + 1
            return x

    same_gradients(Normed(), r(5, 4), torch.tensor(n))


@pytest.mark.parametrize("n", [1, 3])
def test_regions_without_gradient(same_gradients, n):
    def f(x, w, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            with torch.no_grad():
                s = (h * w).sum()
            h = h * s + w.detach() * h
            if s > 0:
                with torch.no_grad():
                    twice = h * 2
                h = h + twice
            i = i + 1
        return h, h.detach()

    same_gradients(f, r(3), r(3), torch.tensor(n), numeric=False)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_rows_written_in_a_loop(same_gradients, n):
    def f(x, w, n):
        buffer = torch.zeros(6, 4)
        h = x
        for i in range(n.item()):
            h = torch.tanh(h @ w)
            buffer[i] = h[0]
            buffer[1:3].add_(h[1])
            buffer.mul_(1.1)
        view = buffer[2:4]
        view.mul_(x[0])
        return buffer.exp(), h

    same_gradients(f, r(2, 4), r(4, 4), torch.tensor(n))


def test_a_long_loop_in_one_node(same_gradients):
    def f(x, w, n):
        h = x
        for _ in range(n.item()):
            h = torch.sin(h @ w) + x
        return h

    same_gradients(f, r(2, 2), torch.full((2, 2), 0.1, requires_grad=True), torch.tensor(300), rtol=1e-8)


def test_products_of_vectors(same_gradients):
    def f(x, w, n):
        h = x
        for _ in range(n.item()):
            h = torch.tanh(h @ w)
            if h.sum() > 0:
                h = w @ h
        return h.dot(x)

    for n in (0, 1, 4):
        same_gradients(f, r(3), r(3, 3), torch.tensor(n))


@pytest.mark.parametrize("turned", [False, True])
def test_products_are_added_to_the_gradient_of_a_weight(same_gradients, turned):
    """Without a matrix for each iteration, also where the weight was transposed."""

    def loop(W, x, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            h = torch.tanh(h @ W.t() if turned else h @ W)
            i = i + 1
        return h

    runner = same_gradients(loop, r(4, 4), r(3, 4), torch.tensor(3))
    (halves,) = runner._halves.values()
    (stage,) = halves.derivative.stages
    names = [op.name for op in stage.backward.block.walk()]
    assert names.count("grad.accumulate_product") == 1 and "grad.accumulate" not in names
    assert names.count("aten.mm.default") == 1
