"""Generator functions inside a converted function, decorated by torch's context managers, as eager decorates them."""

from __future__ import annotations

import contextlib
import functools
import inspect

import pytest
import torch

from tests.oracle import check


def without_gradients(x):
    @torch.no_grad()
    def g(v):
        for i in range(2):
            yield v * i, torch.is_grad_enabled()

    return [value for value, _ in g(x)], [on for _, on in g(x)], torch.is_grad_enabled(), x * 2


def without_parentheses(x):
    @torch.no_grad
    def g(v):
        yield v * 2
        yield v * 3

    return sum(v for v in g(x)) + x


def decorated_later(x):
    def g(v):
        for i in range(2):
            yield v * i

    return sum(v for v in torch.no_grad()(g)(x)) + sum(v for v in torch.no_grad(g)(x)) + sum(v for v in g(x))


def with_gradients(x):
    with torch.no_grad():
        @torch.enable_grad()
        def g(v):
            yield v * 2

        return [v * 3 for v in g(x)], list(g(x))


def inference(x):
    @torch.inference_mode()
    def g(v):
        yield v.sum().item()

    return list(g(x))


def inference_without_parentheses(x):
    @torch.inference_mode
    def g(v):
        yield torch.is_inference_mode_enabled(), v.sum().item()

    return list(g(x))


def chosen(x):
    @torch.set_grad_enabled(False)
    def g(v):
        yield v * 2

    return next(g(x)), x * 1


def on_paths(x):
    @torch.no_grad()
    def g(v):
        yield v
        yield v * 2

    total = x
    if x.sum() > 0:
        for v in g(x):
            total = total + v
    return total


def gives_a_value(x):
    @torch.no_grad()
    def g(v):
        yield v * 2
        return 5

    def outer():
        found = yield from g(x)
        yield found

    return list(outer())


def other_decorators(x):
    def twice(f):
        @functools.wraps(f)
        def both(*args):
            yield from f(*args)
            yield from f(*args)

        return both

    @twice
    @torch.no_grad()
    def g(v):
        yield v * 2

    @contextlib.contextmanager
    def manager():
        yield 3

    with manager() as number:
        return list(g(x)), number, g.__name__


def asked(x):
    def g():
        yield 1

    def h():
        return 1

    return inspect.isgeneratorfunction(g), inspect.isgeneratorfunction(h), inspect.isgenerator(g()), x


FUNCTIONS = [
    without_gradients, without_parentheses, decorated_later, with_gradients, inference,
    inference_without_parentheses, chosen, on_paths, gives_a_value,
    other_decorators, asked,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_decorated(f):
    calls = [(torch.tensor([1.0, 2.0, -0.5], requires_grad=needed),) for needed in (True, False)]
    check(f, *calls, ((-torch.ones(3)).requires_grad_(),))
