"""``torch.autograd.grad`` inside a converted function: the same values, written out as Operators of the Program."""

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.autodiff import gradient_path
from runtime.ir.verify import verify
from tests.oracle import same, tensors


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


def r(*shape, grad=True):
    return torch.randn(shape, requires_grad=grad)


def compare(f, *args, lowered=True, tolerance=1e-10):
    """Eager, the interpreter under autograd, and the Program: values, and gradients through them."""
    static = to_static(f)
    leaves = [arg for arg in args if arg.requires_grad]
    found = {}
    for road in ("eager", "autograd", "program"):
        for leaf in leaves:
            leaf.grad = None
        if road == "eager":
            out = f(*args)
        else:
            with gradient_path(road):
                out = static(*args)
        total = sum(t.sum() for t in tensors(out) if t.is_floating_point() and t.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
        found[road] = out, [leaf.grad for leaf in leaves]
    for road in ("autograd", "program"):
        same(found[road], found["eager"], road, tolerance)
    runner = static.specialization().ready.runner
    assert [one is not None for one in runner._lowered.values()] == [lowered]
    for one in runner._lowered.values():
        if one is not None:
            verify(one.program)
            assert not [op for op in one.program.block.walk() if op.name == "gradients"]
    return runner


def test_a_gradient_in_a_straight_line():
    def f(x, w):
        loss = (x @ w).square().sum()
        (g,) = torch.autograd.grad(loss, w)
        return loss.detach(), g

    compare(f, r(3, 3), r(3, 3))
    compare(f, r(3, 3, grad=False), r(3, 3))


def test_gradients_of_several_by_several():
    def f(x, w):
        y = torch.tanh(x @ w)
        return torch.autograd.grad([y, y.sum()], [x, w], [torch.ones(3, 3) * 2, None])

    compare(f, r(3, 3), r(3, 3))


def test_by_a_value_in_between():
    def f(x, w):
        h = torch.tanh(x @ w)
        loss = (h * h).sum() + h.sum()
        (g,) = torch.autograd.grad(loss, h)
        return g

    compare(f, r(3, 3), r(3, 3))


@pytest.mark.parametrize("n", [0, 1, 7])
def test_gradient_descent_is_one_loop(n):
    def train(X, Y, W, n):
        W = W.detach().requires_grad_()
        i = torch.tensor(0)
        while i < n:
            loss = ((torch.tanh(X @ W) - Y) ** 2).mean()
            (g,) = torch.autograd.grad(loss, W)
            W = (W - 0.1 * g).detach().requires_grad_()
            i = i + 1
        return W.detach()

    runner = compare(train, r(5, 3, grad=False), r(5, 2, grad=False), r(3, 2, grad=False), torch.tensor(n))
    (lowered,) = runner._lowered.values()
    assert [op.name for op in lowered.program.block.ops].count("while_loop") == 1


def test_a_thousand_steps():
    def train(X, Y, W):
        W = W.detach().requires_grad_()
        for _ in range(torch.tensor(1000).item()):
            loss = ((X @ W - Y) ** 2).mean()
            (g,) = torch.autograd.grad(loss, W)
            W = (W - 0.1 * g).detach().requires_grad_()
        return W.detach()

    torch.manual_seed(0)
    X, solution = torch.randn(20, 3), torch.randn(3, 1)
    found = to_static(train)(X, X @ solution, torch.zeros(3, 1))
    torch.testing.assert_close(found, train(X, X @ solution, torch.zeros(3, 1)))
    torch.testing.assert_close(found, solution, rtol=1e-6, atol=1e-6)


def test_updates_in_place_on_a_branch():
    def train(X, Y, W, n):
        W = W.detach().clone().requires_grad_()
        i = torch.tensor(0)
        while i < n:
            loss = ((torch.tanh(X @ W) - Y) ** 2).mean()
            if loss > 0.1:
                (g,) = torch.autograd.grad(loss, [W])
                with torch.no_grad():
                    W.sub_(0.1 * g)
            i = i + 1
        return W.detach()

    compare(train, r(5, 3, grad=False), r(5, 2, grad=False), r(3, 2, grad=False), torch.tensor(7))


def test_learning_to_learn():
    def meta(X, Y, W, lr):
        for _ in range(3):
            loss = ((torch.tanh(X @ W) - Y) ** 2).mean()
            (g,) = torch.autograd.grad(loss, W, create_graph=True)
            W = W - lr * g
        return ((torch.tanh(X @ W) - Y) ** 2).mean()

    compare(meta, r(5, 3, grad=False), r(5, 2, grad=False), r(3, 2), r())


@pytest.mark.parametrize("n", [0, 1, 4])
def test_learning_to_learn_in_a_staged_loop(n):
    def meta(X, Y, W, lr, n):
        i = torch.tensor(0)
        while i < n:
            loss = ((torch.tanh(X @ W) - Y) ** 2).mean()
            (g,) = torch.autograd.grad(loss, W, create_graph=True)
            W = W - lr * g
            i = i + 1
        return ((torch.tanh(X @ W) - Y) ** 2).mean()

    compare(meta, r(5, 3, grad=False), r(5, 2, grad=False), r(3, 2), r(), torch.tensor(n))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_through_a_loop_with_branches(n):
    def f(x, w, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            if h.sum() > 0:
                h = torch.tanh(h @ w)
            else:
                h = torch.sin(h) + x
            i = i + 1
        return torch.autograd.grad(h.sum() + w.sum() * 0, [w, x])

    compare(f, r(3, 3), r(3, 3), torch.tensor(n))


def test_a_gradient_penalty():
    def f(x, w):
        y = torch.tanh(x @ w).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        penalty = (g.norm() - 1) ** 2
        if penalty > 0.5:
            penalty = penalty * 2
        return y + penalty

    compare(f, r(3, 3), r(3, 3))


def test_a_second_derivative():
    def f(x):
        y = (x**4).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        return h

    compare(f, r(4))


def test_unused_inputs():
    def f(x, w, v):
        loss = (x @ w).sum()
        return torch.autograd.grad(loss, [w, v], materialize_grads=True)

    compare(f, r(3, 3), r(3, 3), r(2))


@pytest.mark.parametrize("make,message", [
    (lambda x: torch.autograd.grad(x * 2, x), "implicitly created only for scalar"),
    (lambda x: torch.autograd.grad(x.detach().sum(), x), "does not require grad"),
    (lambda x: torch.autograd.grad(x.sum(), torch.ones(3)), "does not require grad"),
    (lambda x: x.long().requires_grad_(), "floating point"),
])  # fmt: skip
def test_torchs_own_errors(make, message):
    def f(x):
        return make(x)

    with pytest.raises(RuntimeError, match=message):
        f(r(3))
    with pytest.raises(RuntimeError, match=message):
        to_static(f)(r(3))


def test_requires_grad_of_an_argument_is_refused():
    def f(x):
        x.requires_grad_()
        return x * 2

    with pytest.raises(Exception, match="changes an argument"):
        to_static(f)(r(3, grad=False))


def test_zeros_without_memory_are_added_to() -> None:
    """The derivative of ``sgn`` is such a tensor, which autograd adds other gradients to in place."""

    def function(x: torch.Tensor) -> Any:
        h = torch.sin(x)
        y = torch.sgn(h)
        return h, y, y * y.contiguous()

    for called in (function, to_static(function)):
        x = torch.ones(3, requires_grad=True)
        for _ in range(2):
            sum(one.sum() for one in called(x)).backward()
        torch.testing.assert_close(x.grad, 2 * torch.cos(torch.ones(3)))
    x = torch.ones(3, requires_grad=True)
    for _ in range(2):  # eager raises in the second: its own ``x.grad`` is such a tensor
        called(x)[2].sum().backward()
    torch.testing.assert_close(x.grad, torch.zeros(3))
