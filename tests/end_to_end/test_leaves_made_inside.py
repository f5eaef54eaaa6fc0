"""Results that need a gradient only through a leaf made inside the function: they say so, as in eager."""

from __future__ import annotations

import pytest
import torch

import dy2static
from tests.oracle import same


def graph_kept(x):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z**3).sum(), z, create_graph=True)
    return g


def graph_dropped(x):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z**3).sum(), z)
    return g, (g * x).sum()


def linear_gradient(x):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z * 2).sum(), z, create_graph=True)
    return g


def factory(x):
    z = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad((z**3).sum(), z, create_graph=True)
    return g + x.detach()


def factory_in_a_branch(x):
    z = torch.zeros(3, requires_grad=True)
    if x.sum() > 0:
        z = z * 2
    return z + 1


def no_gradient_asked(x):
    z = x.detach().requires_grad_()
    y = z * 2
    return y.detach(), y.requires_grad, y


def in_a_branch(x):
    z = x.detach().requires_grad_()
    if x.sum() > 0:
        (g,) = torch.autograd.grad((z**3).sum(), z, create_graph=True)
    else:
        g = x
    return g


def leaf_of_a_branch(x):
    g = x.detach()
    if x.sum() > 0:
        z = x.detach().requires_grad_()
        (g,) = torch.autograd.grad((z**3).sum(), z, create_graph=True)
    return g, g.requires_grad


def second_order(x):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z**3).sum(), z, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), z)
    return h, g.requires_grad, h.requires_grad


def penalty(x):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z**3).sum(), z, create_graph=True)
    return (g * x).sum(), g.detach()


def both(x):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z**3 * x).sum(), z, create_graph=True)
    return g


def in_a_loop(x):
    g = x.detach()
    i = 0
    while g.abs().sum() < 100 and i < 3:
        z = x.detach().requires_grad_()
        (g,) = torch.autograd.grad((z**3).sum() * (i + 1), z, create_graph=True)
        i = i + 1
    return g


def from_one_iteration_to_the_next(x):
    z = x.detach().requires_grad_()
    g = x.detach()
    i = 0
    while g.abs().sum() < 1000 and i < 3:
        (g,) = torch.autograd.grad((z**3 * g).sum(), z, create_graph=True)
        i = i + 1
    return g


def steps_of_descent(x):
    w = x.detach().requires_grad_()
    i = 0
    while w.abs().sum() > 0.1 and i < 3:
        (g,) = torch.autograd.grad((w * w).sum(), w, create_graph=True)
        w = w - 0.1 * g
        i = i + 1
    return w * 1, w.requires_grad


def under_no_grad(x):
    z = x.detach().requires_grad_()
    with torch.no_grad():
        y = z * 2
    return y, y.requires_grad


def under_enable_grad(x):
    with torch.enable_grad():
        z = x.detach().requires_grad_()
        (g,) = torch.autograd.grad((x * z**3).sum(), z, create_graph=True)
        return g


FUNCTIONS = [
    graph_kept, graph_dropped, linear_gradient, factory, factory_in_a_branch, no_gradient_asked, in_a_branch,
    leaf_of_a_branch, second_order, penalty, both, in_a_loop, from_one_iteration_to_the_next, steps_of_descent,
    under_no_grad, under_enable_grad,
]  # fmt: skip


def outcome(function, sign, needs, grad_mode):
    x = torch.full((3,), 2.0 * sign, requires_grad=needs)
    try:
        with torch.set_grad_enabled(grad_mode):
            result = function(x)
    except RuntimeError as error:  # without a graph there is no gradient
        return str(error)
    for tensor in result if isinstance(result, tuple) else (result,):
        if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
            tensor.sum().backward(retain_graph=True)
    return result, x.grad


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_results_need_a_gradient_as_in_eager(function):
    converted = dy2static.to_static(function)
    for sign in (1, -1):
        for needs in (False, True):
            for grad_mode in (True, False):
                expected = outcome(function, sign, needs, grad_mode)
                for _ in range(2):
                    same(outcome(converted, sign, needs, grad_mode), expected, tolerance=1e-5)


@pytest.mark.parametrize("function", [graph_kept, factory_in_a_branch, both], ids=lambda function: function.__name__)
def test_loaded_from_a_file(function, tmp_path):
    x = torch.full((3,), 2.0, requires_grad=True)
    static = dy2static.to_static(function)
    static(x)
    loaded = dy2static.load(dy2static.save(static, tmp_path / "f"))
    same(outcome(loaded, 1, True, True), outcome(function, 1, True, True), tolerance=1e-5)
