"""loop_options(checkpoints=...): the same values, gradients and random numbers, bit for bit, from a few states."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dy2static import load, loop_options, save, to_static
from runtime.autodiff import checkpoints
from tests.oracle import run, same

LENGTHS = (0, 1, 2, 3, 4, 11)
"""Around the three states that are kept."""


def one_tensor(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = torch.tanh(x @ w) + x * 0.5
            i += 1
    return x


def several(x, w, n, most):
    y, total, i = x * 0.5, 0.0, 0
    with loop_options(checkpoints=most):
        while i < n:
            x, y = torch.tanh(y @ w), x * 1.1 + y
            total = total + x.detach().sum().item()
            i += 1
    return x, y, total, i


def views(x, w, n, most):
    v, i = x.t(), 0
    with loop_options(checkpoints=most):
        while i < n:
            v = (v @ w).t()[:].sin()
            i += 1
    return v * 1  # without an iteration v is a view of the argument: as a result it is left to PyTorch's autograd


def written(x, w, n, most):
    x, rows, i = x * 1.0, torch.zeros(4, 4), 0
    with loop_options(checkpoints=most):
        while i < n:
            rows[0] = x[1] * 2
            x = torch.tanh(x @ w) + rows
            rows.mul_(0.5)
            i += 1
    return x, rows


def argument_written(x, w, n, most):
    state, i = w.detach()[0].clone(), 0
    with loop_options(checkpoints=most):
        while i < n:
            state.mul_(0.9)
            x = torch.sin(x * state @ w)
            i += 1
    return x, state


def left(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = torch.tanh(x @ w) + x
            if x.sum() > 3:
                break
            x = x * 0.9
            i += 1
    return x


def growing(x, w, n, most):
    items, i = [], 0
    with loop_options(checkpoints=most):
        while i < n:
            x = torch.tanh(x @ w)
            items.append(x * 2)
            i += 1
    return x, items


def reading(x, w, n, most):
    items, i = [x], 0
    with loop_options(checkpoints=most):
        while i < n:
            items.append(torch.tanh(items[-1] @ w) + items[0])
            i += 1
    return torch.stack(items).sum(0)


def taking(x, w, n, most):
    items, i = [x, x * 2], 0
    with loop_options(checkpoints=most):
        while i < n:
            last = items.pop()
            items.append(torch.tanh(last @ w) + items[0])
            items.append(items[-1] * 0.3)
            i += 1
    return torch.stack(items).sum(0)


def counted(x, w, n, most):
    sums = []
    with loop_options(checkpoints=most):
        for i in range(int(n)):
            x = torch.tanh(x @ w) + x * i
            sums.append(x.sum())
    return x, sums


def rolled(x, w, n, most):
    with loop_options(checkpoints=most):
        for i in range(6):
            x = torch.tanh(x @ w) + x * i
    return x


def outer(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            j = 0
            while j < i:
                x = torch.sin(x @ w) + x * 0.5
                j += 1
            x = x + w
            i += 1
    return x


def inner(x, w, n, most):
    i = 0
    while i < n:
        j = 0
        with loop_options(checkpoints=most):
            while j < n:
                x = torch.sin(F.dropout(x, 0.2) @ w) + x * 0.5
                j += 1
        x = x + w
        i += 1
    return x


def both(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            j, x = 0, F.dropout(x, 0.1)
            with loop_options(checkpoints=most):
                while j < n:
                    x = torch.sin(F.dropout(x, 0.2) @ w) + x * 0.5
                    j += 1
            x = x + w
            i += 1
    return x


def over_rows(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            h, rows = x[0], []
            for row in x:
                h = torch.tanh(h + F.dropout(row, 0.2) @ w)
                rows.append(h)
            x = torch.stack(rows)
            i += 1
    return x


class Rounded(torch.autograd.Function):
    """A step function with a gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.round(x * 4) / 4

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.cos(x)


def own_formula(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = Rounded.apply(torch.tanh(x @ w) + x * 0.3)
            i += 1
    return x


def on_a_path(x, w, n, most):
    if x.sum() < 1000:
        i = 0
        with loop_options(checkpoints=most):
            while i < n:
                x = torch.sin(x @ w) if x.sum() > 0 else x + 1
                i += 1
    return x


def never_reached(x, w, n, most):
    u, z, i = w * 2, x, 0
    with loop_options(checkpoints=most):
        while i < n:
            if x.sum() > 1e6:
                z = z @ u
            x = torch.sin(x)
            i += 1
    return x + z


def without_gradient(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            y = x.detach() * 2
            with torch.no_grad():
                z = torch.cos(x)
            x = torch.tanh(x @ w) * y + z
            i += 1
    return x


def made_inside(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            z = torch.tanh(x @ w)
            x = x + z
            i += 1
    return x + z if n > 0 else x


def another_size(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = torch.cat([x, (x @ w).sin()])[:20]
            i += 1
    return x


def random(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            if x.sum() > 0:
                x = x + torch.rand_like(x)
            else:
                x = F.dropout(x @ w, 0.5) + torch.randn(4, 4)
            i += 1
    return x + torch.rand(4, 4)


def told(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = torch.tanh(x @ w) + x
            assert i < 1000
            if i % 2 == 0:
                print("half way", i)
            print("step", i)
            i += 1
    return x


def with_a_limit(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most, max_iterations=5):
        while i < n:
            x = torch.tanh(x @ w)
            i += 1
    return x


def recomputed(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most, recompute=True):
        while i < n:
            x = torch.tanh(x @ w) + x
            i += 1
    return x


def gradient_inside(x, w, n, most):
    i, h = 0, x
    with loop_options(checkpoints=most):
        while i < n:
            h = torch.tanh(h @ w) + h * 0.5
            i += 1
    (grad,) = torch.autograd.grad(h.square().sum(), x, retain_graph=True)
    return h, grad


FUNCTIONS = (
    one_tensor, several, views, written, argument_written, left, growing, reading, taking, counted, rolled, outer,
    inner, both, over_rows, own_formula, on_a_path, never_reached, without_gradient, made_inside, another_size, random,
    told, with_a_limit, recomputed, gradient_inside,
)  # fmt: skip


def arguments(length, most):
    generator = torch.Generator().manual_seed(length)
    x, w = (torch.randn(4, 4, generator=generator) * 0.7 for _ in range(2))
    return x.requires_grad_(), w.requires_grad_(), torch.tensor(length), most


@pytest.fixture
def used(monkeypatch):
    """Counts the loops whose gradients keep a few states."""
    found = []
    keep_states = checkpoints.keep_states

    def noted(*args):
        found.append(args[-1])
        return keep_states(*args)

    monkeypatch.setattr(checkpoints, "keep_states", noted)
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_nothing_differs_from_the_loop_without_the_option(function, used, tmp_path):
    found = {most: [to_static(function)] for most in (None, 3)}
    for length in LENGTHS:
        plain, checkpointed = (run(one, arguments(length, most)) for most, (one,) in found.items())
        same(checkpointed, plain, f"{length} iterations")
    assert set(used) == {3}
    for most, statics in found.items():
        save(statics[0], tmp_path / f"{most}.d2s")
        statics.append(load(tmp_path / f"{most}.d2s"))
    for length in LENGTHS:
        plain, checkpointed = (run(one, arguments(length, most)) for most, (_, one) in found.items())
        same(checkpointed, plain, f"loaded, {length} iterations")


@pytest.mark.parametrize("most", [1, 2, 8])
@pytest.mark.parametrize("function", [random, growing, both], ids=lambda function: function.__name__)
def test_any_number_of_states(function, most):
    static = to_static(function)
    for length in (0, 1, most - 1, most, most + 1, 9):
        same(run(static, arguments(length, most)), run(static, arguments(length, None)), f"{length} iterations")


@pytest.mark.parametrize("backend", ["interpreter", "c"])
def test_a_thousand_iterations(backend):
    static = to_static(one_tensor, backend=backend)
    same(run(static, arguments(1000, 6)), run(static, arguments(1000, None)), backend)


class Recurrent(nn.Module):
    """A body with buffers that every iteration updates, dropout and a cell."""

    def __init__(self, most):
        super().__init__()
        self.most = most
        self.linear, self.norm, self.cell = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.GRUCell(4, 4)

    def forward(self, x, n):
        i = 0
        with loop_options(checkpoints=self.most):
            while i < n:
                x = self.cell(F.dropout(self.norm(torch.relu(self.linear(x))), 0.3), x)
                i += 1
        return x


@pytest.mark.parametrize("backend", ["interpreter", "c"])
def test_a_module_whose_buffers_the_loop_updates(backend, used):
    layers = []
    for most in (None, 3):
        torch.manual_seed(0)
        layers.append(to_static(Recurrent(most), backend=backend))
    for length in LENGTHS:
        outcomes = [run(layer, arguments(length, None)[::2], 1, list(layer.parameters())) for layer in layers]
        same(outcomes[1], outcomes[0], f"{length} iterations")
        same(dict(layers[1].named_buffers()), dict(layers[0].named_buffers()), f"{length}: buffers")
    assert used


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_of_gradients(create_graph):
    def inside(x, w, n, most):
        i, h = 0, x
        with loop_options(checkpoints=most):
            while i < n:
                h = torch.tanh(h @ w) + h * 0.5
                i += 1
        (grad,) = torch.autograd.grad(h.square().sum(), x, create_graph=create_graph, retain_graph=True)
        return grad.square().sum() if create_graph else h.sum() + grad.sum()

    static = to_static(inside)
    for length in LENGTHS:
        same(run(static, arguments(length, 3)), run(static, arguments(length, None)), f"{length} iterations")


def test_a_graph_of_the_backward():
    static = to_static(one_tensor)
    found = []
    for most in (None, 3):
        x, w, *rest = arguments(7, most)
        (first,) = torch.autograd.grad(static(x, w, *rest).square().sum(), x, create_graph=True)
        found.append([first.detach(), *torch.autograd.grad(first.square().sum(), (x, w))])
    same(*found)


def test_backward_twice():
    static = to_static(both)
    x, w, *rest = arguments(5, 3)
    loss = static(x, w, *rest).sum()
    first = torch.autograd.grad(loss, (x, w), retain_graph=True)
    before = torch.get_rng_state()
    same(torch.autograd.grad(loss, (x, w)), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_generators_of_the_users():
    generators = [torch.Generator(), torch.Generator()]

    def drawing(x, n, most):
        i = 0
        with loop_options(checkpoints=most):
            while i < n:
                x = torch.sin(x) * torch.rand(3, generator=generators[0])
                if x.sum() > 0:
                    x = x + torch.randn(3, generator=generators[1])
                i += 1
        return x

    static = to_static(drawing)
    for length in LENGTHS:
        outcomes = []
        for most in (None, 3):
            for number, one in enumerate(generators):
                one.manual_seed(number)
            outcome = run(static, (torch.ones(3, requires_grad=True), torch.tensor(length), most))
            states = [one.get_state() for one in generators]
            outcomes.append([outcome.result, outcome.gradients, outcome.random, states])
        same(*outcomes)


def test_no_recursion_and_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(*(run(to_static(one_tensor), arguments(3000, most)).gradients for most in (None, 20)))


def test_an_argument_that_the_call_writes():
    def filled(x, state, n, most):
        i = 0
        with loop_options(checkpoints=most):
            while i < n:
                state.mul_(0.9).add_(0.1)
                x = torch.sin(x * state)
                i += 1
        return x

    static = to_static(filled)
    for length in LENGTHS:
        outcomes = []
        for most in (None, 3):
            x, state = torch.linspace(-1, 1, 4).requires_grad_(), torch.ones(4) * 2
            outcomes.append((run(static, (x, state, torch.tensor(length), most)), state))
        same(outcomes[1][0], outcomes[0][0], f"{length} iterations")
        same(outcomes[1][1], outcomes[0][1], f"{length}: argument")
