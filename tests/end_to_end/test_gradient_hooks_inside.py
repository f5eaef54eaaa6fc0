"""Hooks that the caller put on tensors, where the function itself asks for gradients; and leaves that only the first
iteration of a loop reaches."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from dy2static import to_static

LOG = []


def doubles(layer):
    layer.weight.register_hook(lambda g: g * 2)


def notes(layer):
    layer.weight.register_hook(LOG.append)


def triples_what_is_kept(layer):
    def triple(p):
        p.grad.mul_(3)

    layer.weight.register_post_accumulate_grad_hook(triple)


def both(layer):
    doubles(layer)
    layer.weight.register_hook(lambda g: g + 1)


def none(layer):
    pass


def asks(layer, x):
    y = (layer(x) ** 2).sum()
    (g,) = torch.autograd.grad(y, layer.weight)
    return g


def asks_with_graph(layer, x):
    y = (layer(x) ** 2).sum()
    (g,) = torch.autograd.grad(y, layer.weight, create_graph=True)
    return g.sum() + y


def asks_for_what_may_be_none(layer, x):
    y = (layer(x) ** 2).sum() if x.sum() > 0 else (x * 2).sum() + layer.bias.sum()
    g, h = torch.autograd.grad(y, [layer.weight, layer.bias], allow_unused=True)
    return g, h


def asks_on_a_path(layer, x):
    if x.sum() > 0:
        (g,) = torch.autograd.grad((layer(x) ** 2).sum(), layer.weight)
        return g
    return x


def goes_backward(layer, x):
    layer.zero_grad()
    y = (layer(x) ** 2).sum()
    y.backward()
    return layer.weight.grad * 1, y.detach()


def asks_in_a_loop(layer, x):
    total = 0.0
    for _ in range(int((x > 0).sum())):
        (g,) = torch.autograd.grad((layer(x) ** 2).sum(), layer.weight)
        total = total + g.sum()
        x = x.detach() + 1
    return total


def first_iteration_reaches_the_argument(layer, x):
    for _ in range(int((x > 0).sum())):
        layer.zero_grad()
        layer(x).sum().backward()
        with torch.no_grad():
            x = x + layer.weight.grad.sum()
    return x


def first_iteration_detaches(layer, x):
    for _ in range(int((x > 0).sum())):
        (layer(x) ** 2).sum().backward()
        x = x.detach() + 1
    return x


FUNCTIONS = [
    asks, asks_with_graph, asks_for_what_may_be_none, asks_on_a_path, goes_backward, asks_in_a_loop,
    first_iteration_reaches_the_argument, first_iteration_detaches,
]  # fmt: skip


def outcome(call, layer, x):
    """Two calls: what they give, what is left in ``.grad``, how often a hook was called."""
    LOG.clear()
    found = []
    for _ in range(2):
        x = x.detach().clone().requires_grad_(x.requires_grad)
        layer.zero_grad()
        result = call(layer, x)
        found.append((result, x.grad, layer.weight.grad, layer.bias.grad, len(LOG)))
    return found


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("hook", [none, doubles, notes, both, triples_what_is_kept])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_hooks(function, hook, needed):
    torch.manual_seed(0)
    plain = nn.Linear(3, 3)
    for signs in ((1.0, 1.0, 1.0), (1.0, -0.3, -0.3), (-1.0, -1.0, -1.0)):
        x = torch.tensor(signs, requires_grad=needed)
        layers = [copy.deepcopy(plain) for _ in range(2)]
        for layer in layers:
            hook(layer)
        expected = outcome(function, layers[0], x)
        converted = to_static(lambda x, layer=layers[1]: function(layer, x))
        got = outcome(lambda layer, x: converted(x), layers[1], x)
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("how", ["hook on the argument", "hook that comes later"])
def test_hooks_that_a_program_did_not_know(how):
    weight = torch.tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        (g,) = torch.autograd.grad((x * weight).sum(), x)
        (h,) = torch.autograd.grad((x * weight).sum(), weight)
        return g, h

    def call(function):
        x = torch.tensor([3.0, 4.0], requires_grad=True)
        first = function(x)
        if how == "hook on the argument":
            x.register_hook(lambda g: g * 5)
        else:
            handle = weight.register_hook(lambda g: g * 5)
        second = function(x)
        if how == "hook that comes later":
            handle.remove()
        return first, second, function(torch.tensor([3.0, 4.0], requires_grad=True))

    torch.testing.assert_close(call(to_static(f)), call(f))
