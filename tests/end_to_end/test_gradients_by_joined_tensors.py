"""Gradients by a tensor that came out of a branch, a loop or a list: eager's, or a located error.

What is computed from the tensor afterwards leads back to it. What was computed from it inside does not: both are
outputs of the branch or loop. Such a gradient once was None, lacked a share, or ended in an error of PyTorch's.
"""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import same

P, Q = torch.nn.Parameter(torch.full((3,), 1.5)), torch.nn.Parameter(torch.full((3,), -2.0))
grad = torch.autograd.grad


def leaves_of_paths(x):
    if x.sum() > 0:
        return (x * 0.5).detach().requires_grad_()
    return (x * 2).detach().requires_grad_()


def computed_afterwards(x):
    z = leaves_of_paths(x)
    return grad((z**2).sum(), z), z.is_leaf, z.requires_grad, z.grad_fn is None


def backward_afterwards(x):
    z = leaves_of_paths(x)
    (z**2).sum().backward()
    return z.grad


def beyond_the_loop(x):
    h = x * 2
    k = h
    for _ in range(5):
        k = torch.tanh(k)
        if k.sum() < 1:
            break
    return grad((k**2).sum(), k), grad((k**2).sum(), h)


def descent_to_a_limit(x):
    w = x.detach().requires_grad_()
    count = 0
    while w.sum().abs() > 0.5 and count < 20:
        (g,) = grad((w**2).sum(), w)
        w = (w - 0.1 * g).detach().requires_grad_()
        count += 1
    return w.detach(), grad((w**3).sum(), w), count


def descent_with_the_value_kept(x):
    """An iteration differentiates what the one before computed: the loop is unrolled."""
    w = x.detach().requires_grad_()
    value = (w**2).sum()
    for _ in range(6):
        (g,) = grad(value, w)
        w = (w - 0.1 * g).detach().requires_grad_()
        value = (w**2).sum()
    return w.detach(), g


def items_of_a_list(x):
    zs = []
    for number in range(5):
        zs.append((x * number).detach().requires_grad_())
    return grad(torch.stack(zs).pow(2).sum(), zs)


def parameters_of_paths(x):
    p = P if x.sum() > 0 else Q
    return p.is_leaf, p.grad_fn is None, grad((p * p).sum(), p)


def used_up(x):
    """The value leaves the call with a history that is gone, also where nothing of the caller's needs a gradient."""
    z = x.detach().requires_grad_()
    value = (z**2).sum()
    return grad(value, z), value


WORKS = [
    computed_afterwards, backward_afterwards, beyond_the_loop, descent_to_a_limit, descent_with_the_value_kept,
    items_of_a_list, parameters_of_paths, used_up,
]  # fmt: skip


def computed_inside(x):
    if x.sum() > 0:
        z = (x * 0.5).detach().requires_grad_()
        y = (z**2).sum()
    else:
        z = (x * 2).detach().requires_grad_()
        y = (z**3).sum()
    return z, y


def asked_for_outside(x):
    z, y = computed_inside(x)
    return grad(y, z)


def may_be_unused(x):
    z, y = computed_inside(x)
    return grad(y, z, allow_unused=True)


def a_share_from_inside(x):
    z, y = computed_inside(x)
    return grad(y + z.sum(), z)


def backward_outside(x):
    z, y = computed_inside(x)
    y.backward()
    return z.grad


def no_leaf(x):
    h, y = x * 2, (x * 2).sum()
    if x.sum() > 0:
        h = torch.tanh(x * 1)
        y = (h * 3).sum()
    return grad(y, h, allow_unused=True)


def the_same_on_one_path(x):
    first = x.detach().requires_grad_()
    z = first
    if x.sum() > 100:
        z = first * 2
    return grad((first * z).sum(), z)


def computed_before(x):
    z = x.detach().requires_grad_()
    y = (z**2).sum()
    if x.sum() > 100:
        z = z.detach().requires_grad_()
        y = (z**3).sum()
    return grad(y, z)


def line_search(x):
    """Halve a step until the value falls, then ask for the gradient there."""
    x = x.detach().requires_grad_()
    value = (x**4).sum()
    (g,) = grad(value, x)
    t = 1.0
    while True:
        new = (x - t * g).detach().requires_grad_()
        new_value = (new**4).sum()
        if new_value <= value or t < 1e-8:
            break
        t = t / 2
    return grad(new_value, new)


def item_of_a_list(x):
    zs, ys = [], []
    while len(zs) < x.abs().sum():
        z = (x * len(zs)).detach().requires_grad_()
        zs.append(z)
        ys.append((z**2).sum())
    return grad(sum(ys), zs[-1], allow_unused=True)


def parameter_and_itself(x):
    p = P if x.sum() > 0 else Q
    return grad((p * p).sum() + P.sum(), p)


def grad_of_a_leaf_on_some_paths(x):
    z = leaves_of_paths(x)
    if x.sum() < 0:
        z = z * 1
    (z**2).sum().backward()
    return z.grad


def leaf_on_some_paths(x):
    z = x.detach().requires_grad_()
    if x.sum() > 0:
        z = z * 1
    return z.is_leaf


def leaf_in_the_first_iteration(x):
    z = x.detach().requires_grad_()
    count = 0
    while z.sum().abs() < 100:
        count += int(z.is_leaf)
        z = z * 2
    return count


REFUSED = {
    asked_for_outside: "D2S213", may_be_unused: "D2S213", a_share_from_inside: "D2S213", backward_outside: "D2S213",
    no_leaf: "D2S213", the_same_on_one_path: "D2S213", computed_before: "D2S213", line_search: "D2S213",
    item_of_a_list: "D2S213", parameter_and_itself: "D2S213", grad_of_a_leaf_on_some_paths: "D2S245",
    leaf_on_some_paths: "D2S213", leaf_in_the_first_iteration: "D2S213",
}  # fmt: skip


@pytest.mark.parametrize("function", WORKS, ids=lambda function: function.__name__)
def test_as_in_eager(function):
    for needs in (True, False) if function is not beyond_the_loop else (True,):
        static = to_static(function)
        for sign in (1, -1):
            x = torch.full((3,), 2.0 * sign, requires_grad=needs)
            for _ in range(2):
                same(static(x), function(x))


@pytest.mark.parametrize(("function", "code"), REFUSED.items(), ids=lambda given: getattr(given, "__name__", given))
def test_refused_where_it_is_asked(function, code):
    for sign in (1, -1):
        x = torch.full((3,), 2.0 * sign, requires_grad=True)
        with pytest.raises(Dy2StaticError, match=rf"\[{code}\][\s\S]*, in {function.__name__}\n"):
            to_static(function)(x)


def test_backward_through_what_was_used_up():
    _, value = to_static(used_up)(torch.ones(3))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        value.backward()


P = torch.nn.Parameter(torch.ones(3, 3))


def asked_for_by_an_argument(x, y):
    loss = (x @ P).exp().sum()
    torch.autograd.grad(loss, x)
    return loss


@pytest.mark.parametrize("allow", [False, True])
@pytest.mark.parametrize("wanted", ["x", "y", "P", "x and y"])
def test_what_was_used_up_is_asked_again_outside(wanted, allow):
    said = []
    for function in (asked_for_by_an_argument, to_static(asked_for_by_an_argument)):
        x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        loss = function(x, y)
        by = {"x": [x], "y": [y], "P": [P], "x and y": [x, y]}[wanted]
        try:
            said.append(str(torch.autograd.grad(loss, by, allow_unused=allow)))
        except RuntimeError as error:
            said.append(str(error)[:60])
    assert said[0] == said[1]
