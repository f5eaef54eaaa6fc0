"""The text of a tensor that a loop carries names its node, that of what it was before the loop as well."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from tests.oracle import same


def _asserting(x):
    y = x
    while y.sum() < 100:
        assert (y > 0).all(), f"not positive: {y}"
        y = y * 2
    return y


def _printing(x):
    y = x
    while y.sum() < 100:
        print(y)
        y = y * 2
    return y


def _printing_after(x):
    y = x
    while y.sum() < 100:
        y = y * 2
    print(y)
    return y


def _two_loops(x):
    y, total = x, x * 0
    while y.sum() < 100:
        z = y
        while z.sum() < 50:
            print(z)
            z = z + y
        y = y * 2
        total = total + z
    print(y, total)
    return y + total


def _swapped(x):
    a, b = x, x.exp()
    while a.sum() < 100:
        print(a, b)
        a, b = b * 2, a
    return a + b


def _of_a_branch(x):
    y = x * 3 if x.sum() > 4 else x
    while y.sum() < 100:
        print(y)
        y = y * 2
    return y


FUNCTIONS = [_asserting, _printing, _printing_after, _two_loops, _swapped, _of_a_branch]


@pytest.mark.parametrize("history", ["leaf", "made", "none"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__[1:])
def test_the_name_of_what_a_loop_starts_with(function, history, capsys):
    converted = to_static(function)
    for start in (1.0, 2.0, 200.0):
        got = []
        for one in (function, converted):
            x = torch.full((3,), start, dtype=torch.float64, requires_grad=history != "none")
            y = one(x.sigmoid() * start if history == "made" else x)
            if y.requires_grad:
                y.sum().backward()
            got.append((y, x.grad, capsys.readouterr().out))
        same(got[1], got[0])


_THE_TENSOR_ITSELF = {
    "broadcast_tensors": lambda y: torch.broadcast_tensors(y, torch.tensor(1.0))[0],
    "broadcast_to": lambda y: y.broadcast_to(y.shape),
    "contiguous": lambda y: y.contiguous(),
    "to": lambda y: y.to(torch.float32),
    "float": lambda y: y.float(),
    "type": lambda y: y.type(torch.float32),
    "expand": lambda y: y.expand(3),
    "reshape": lambda y: y.reshape(3),
    "flatten": lambda y: y.flatten(),
    "atleast_1d": lambda y: torch.atleast_1d(y),
    "dropout": lambda y: torch.nn.functional.dropout(y, 0.5, False),
    "chunk": lambda y: y.chunk(2)[0],
    "unbind": lambda y: y.unbind(0)[1],
    "meshgrid": lambda y: torch.meshgrid(y, y, indexing="ij")[1],
    "real": lambda y: torch.real(y),
    "positive": lambda y: +y,
    "twice": lambda y: y.contiguous().float().flatten(),
}


@pytest.mark.parametrize("history", [True, False], ids=["with a history", "without"])
@pytest.mark.parametrize("construct", ["branch", "loop"])
@pytest.mark.parametrize("name", _THE_TENSOR_ITSELF)
def test_what_may_be_the_tensor_that_a_construct_gave(name, construct, history, capsys):
    own = _THE_TENSOR_ITSELF[name]

    def of_a_branch(x):
        y = x
        if x.sum() > 4:
            y = x * 3
        z = own(y)
        print(z)
        return z + y.sum(), f"{z}"

    def of_a_loop(x):
        y = x
        while y.sum() < 8:
            y = y * 2
        z = own(y)
        print(z)
        return z + y.sum(), f"{z}"

    function = of_a_branch if construct == "branch" else of_a_loop
    static = to_static(function)
    for start in (1.0, 2.0, 4.0):
        x = torch.full((3,), start, requires_grad=history)
        expected = function(x)
        text = capsys.readouterr().out
        same(static(x), expected)
        assert capsys.readouterr().out == text


def test_the_text_of_a_distribution_that_a_branch_chose():
    def f(x):
        if x.sum() > 4:
            x = x * 3
        return torch.distributions.Normal(x, 1.0).log_prob(x * 2)

    static = to_static(f)
    for start in (1.0, 2.0):
        x = torch.full((3,), start, requires_grad=True)
        same(static(x), f(x))
