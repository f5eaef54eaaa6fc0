"""recompute: the same gradients, with fewer values kept."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import runtime
from runtime.ir.types import ArrayType


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


def r(*shape):
    return torch.randn(shape, requires_grad=True)


def kept(runner):
    """How many tensors, and how many stacks of them, the forward half keeps beside its results."""
    (halves,) = runner._halves.values()
    derivative = halves.derivative
    extra = derivative.forward.block.yields[derivative.results + len(derivative.flags) :]
    stacks = [one for one in extra if isinstance(one.type, ArrayType)]
    return len(extra) - len(stacks), len(stacks)


def plain(x, a, b):
    h = torch.tanh(torch.relu(x @ a) @ b)
    if h.sum() > 0:
        h = torch.sin(torch.cos(h)) @ a
    return torch.exp(h)


def region(x, a, b):
    with runtime.recompute():
        h = torch.tanh(torch.relu(x @ a) @ b)
        if h.sum() > 0:
            h = torch.sin(torch.cos(h)) @ a
    return torch.exp(h)


@pytest.mark.parametrize("seed", range(3))
def test_a_region(same_gradients, seed):
    torch.manual_seed(seed)
    leaves = r(3, 3), r(3, 3), r(3, 3)
    assert kept(same_gradients(region, *leaves))[0] < kept(same_gradients(plain, *leaves))[0]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_an_iteration(same_gradients, n):
    def f(x, a, n):
        h = x
        i = torch.tensor(0)
        while i < n:
            with runtime.recompute():
                h = torch.tanh(torch.sin(torch.cos(h @ a)) + x)
            i = i + 1
        return h

    assert kept(same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n)))[1] == 1


@pytest.mark.parametrize("seed", range(3))
def test_dropout_masks_are_kept(same_gradients, seed):
    def f(x, a, n):
        h = x
        for _ in range(n.item()):
            with runtime.recompute():
                h = torch.tanh(torch.nn.functional.dropout(torch.sin(h @ a), 0.4)) + x
        return h

    same_gradients(f, r(4, 4), r(4, 4), torch.tensor(3), seed=seed)


def test_a_loop_inside_a_region(same_gradients):
    def f(x, a, n):
        with runtime.recompute():
            h = x
            i = torch.tensor(0)
            while i < n:
                h = torch.tanh(h @ a)
                i = i + 1
        return h.exp()

    assert kept(same_gradients(f, r(3, 3), r(3, 3), torch.tensor(3)))[1] == 0


def three(x, a, how):
    for _ in range(3):
        if how == "regions":
            with runtime.recompute():
                x = x + torch.tanh(torch.sin(torch.cos(x @ a)))
        elif how == "one region":
            pass
        elif how == "checkpoint":
            x = checkpoint(lambda x: x + torch.tanh(torch.sin(torch.cos(x @ a))), x, use_reentrant=False)
        else:
            x = x + torch.tanh(torch.sin(torch.cos(x @ a)))
    if how == "one region":
        with runtime.recompute():
            for _ in range(3):
                x = x + torch.tanh(torch.sin(torch.cos(x @ a)))
    return x


@pytest.mark.parametrize(("how", "tensors"), [("plain", 13), ("regions", 4), ("checkpoint", 4), ("one region", 2)])
def test_regions_one_after_the_other(same_gradients, how, tensors):
    """What one gives to the next is kept, so that backward computes them one at a time; x and a are always kept."""
    assert kept(same_gradients(three, r(3, 3), r(3, 3), how)) == (tensors, 0)


def test_a_value_that_two_regions_read(same_gradients):
    def f(x, a):
        with runtime.recompute():
            h = torch.sin(x @ a)
            g = torch.cos(h)
        with runtime.recompute():
            k = torch.tanh(h * g)
            m = torch.exp(k)
        with runtime.recompute():
            return (torch.sin(m) * torch.cos(h) * k).sum(), h.t()

    same_gradients(f, r(3, 3), r(3, 3))


@pytest.mark.parametrize("n", [0, 2, 3])
def test_regions_in_iterations_and_branches(same_gradients, n):
    def f(x, a, n):
        i = torch.tensor(0)
        while i < n:
            with runtime.recompute():
                h = torch.tanh(x @ a)
            with runtime.recompute():
                x = torch.sin(h.t() * x) if h.sum() > 0 else torch.cos(h)
            i = i + 1
        return x

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n))


def test_outside_a_converted_function_it_does_nothing():
    with runtime.recompute():
        assert (torch.ones(2) * 2).sum() == 4
