"""The gradient of a recursion: frames like a tree, results that no gradient reaches, sums over all calls."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from dy2static import to_static
from runtime.autodiff import NotDifferentiable
from runtime.autodiff.derive import derive
from runtime.ir.verify import verify


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


def r(*shape, grad=True):
    return torch.randn(*shape, requires_grad=grad)


DEPTHS = [0, 1, 2, 5]


def power(x, w, n):
    if n > 0:
        return torch.tanh(power(x * w, w, n - 1) + x)
    return x.sin()


@pytest.mark.parametrize("n", DEPTHS)
def test_arguments_and_a_tensor_from_outside(same_gradients, n):
    same_gradients(power, r(3), r(3), torch.tensor(n))
    same_gradients(power, r(3, grad=False), r(3), torch.tensor(n))
    same_gradients(power, r(3), r(3, grad=False), torch.tensor(n))


def tree(x, w, n):
    if n > 0:
        left = tree(x * w, w, n - 1)
        if left.sum() > 0:
            return left * tree(x + w, w, n - 2)
        return left - x
    return x.sin()


@pytest.mark.parametrize("n", DEPTHS)
def test_calls_on_some_paths(same_gradients, n):
    for _ in range(3):
        same_gradients(tree, r(3), r(3), torch.tensor(n))


def in_loops(x, w, n):
    total = x * 0
    k = torch.tensor(0)
    while k < n:
        total = total + in_loops(x * w, w, n - 1 - k)
        k = k + 1
    return (total + x).cos()


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_calls_in_a_loop(same_gradients, n):
    same_gradients(in_loops, r(3), r(3), torch.tensor(n))


@pytest.mark.parametrize("n", DEPTHS)
@pytest.mark.parametrize("use", [None, [0], [1], [0, 2]])
def test_results_that_no_gradient_reaches(same_gradients, n, use):
    def f(x, a, b, n):
        def go(x, y, n):
            if n > 0:
                u, v, c = go(x * a, y * b, n - 1)
                return u.tanh() + y, v, c + 1
            return x, y.sin(), x.detach().sum()

        return go(x, x + 1, n)

    same_gradients(f, r(3), r(3), r(3), torch.tensor(n), use=use)


@pytest.mark.parametrize("n", DEPTHS)
def test_a_result_whose_frame_is_left_out(same_gradients, n):
    """The first of two calls gives nothing that counts: what it kept is no part of what backward goes through."""
    def f(x, n):
        if n > 0:
            a = f(x * 2, n - 1)
            b = f(x + 1, n - 1)
            return b * (a.detach() > 0)
        return x.sin()

    same_gradients(f, r(3), torch.tensor(n))


@pytest.mark.parametrize("n", DEPTHS)
def test_what_needs_a_gradient_in_some_calls_only(same_gradients, n):
    def f(x, w, n):
        def go(y, n):
            if n > 0:
                return go(y * w if n == 2 else y.detach() * 2, n - 1)
            return y

        return go(x, n)

    same_gradients(f, r(3, grad=False), r(3), torch.tensor(n))
    same_gradients(f, r(3), r(3, grad=False), torch.tensor(n))


@pytest.mark.parametrize("n", DEPTHS)
def test_a_weight_that_no_call_used_has_no_gradient(same_gradients, n):
    def f(x, a, b, n):
        def go(y, n):
            if n > 3:
                return go(y * b, n - 1)
            if n > 0:
                return go(y * a, n - 1)
            return y.sin()

        return go(x, n)

    same_gradients(f, r(3), r(3), r(3), torch.tensor(n))


@pytest.mark.parametrize("n", DEPTHS)
def test_sizes_that_differ_from_call_to_call(same_gradients, n):
    def f(x, n):
        if n > 0:
            return torch.cat([f(x[: len(x) // 2 + 1] * 2, n - 1), x.sin()])
        return x * x

    same_gradients(f, r(4), torch.tensor(n))


@pytest.mark.parametrize("n", DEPTHS)
def test_one_inside_another(same_gradients, n):
    def f(x, w, n):
        def inner(y, k):
            return inner(y * x, k - 1) + w if k > 0 else y.cos()

        if n > 0:
            return f(inner(x, n).tanh(), w, n - 1) * w
        return x

    same_gradients(f, r(3), r(3), torch.tensor(n))


@pytest.mark.parametrize("n", DEPTHS)
def test_functions_that_call_each_other(same_gradients, n):
    def f(x, w, n):
        def even(y, n):
            return odd(y * w, n - 1).sin() if n > 0 else y

        def odd(y, n):
            return even(y + w, n - 1) if n > 0 else y * y

        return even(x, n), odd(x, n)

    same_gradients(f, r(3), r(3), torch.tensor(n))


def test_random_numbers_are_those_of_the_forward_half(same_gradients):
    def f(x, n):
        return torch.dropout(f(x * 2, n - 1), 0.5, True) * x if n > 0 else x.sin()

    same_gradients(f, r(6), torch.tensor(4))


def halves_of(function, *args):
    converted = to_static(function)
    converted(*args)
    (one,) = converted._dispatch.cache.all()
    program = one.traced.program
    needs = [arg.requires_grad for arg in args]
    return derive(program, args, needs)


def test_the_halves_are_programs_with_frames():
    halves = halves_of(power, r(3), r(3), torch.tensor(2))
    for program in halves.programs():
        verify(program)
    names = [[op.name for op in program.block.walk()] for program in halves.programs()]
    assert "frame.new" in names[0] and "frame.get" in names[1]
    assert names[1].count("recursion") == names[1].count("recur") == 1


@pytest.mark.parametrize("depth", [1, 300, 900])
def test_as_deep_as_eager(depth):
    def f(x, n):
        return f(x * 0.999, n - 1) if n > 0 else x.sin()

    x = r(3)
    (found,) = torch.autograd.grad(to_static(f)(x, torch.tensor(depth)).sum(), x)
    (wanted,) = torch.autograd.grad(f(x, torch.tensor(depth)).sum(), x)
    torch.testing.assert_close(found, wanted)


def test_a_gradient_of_a_gradient():
    def second(call):
        x = torch.tensor([3.0, 2.0, 1.0], requires_grad=True)
        (first,) = torch.autograd.grad(call(x, x * 1, torch.tensor(3)).pow(2).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)

    torch.testing.assert_close(second(to_static(power)), second(power))


def test_backward_twice():
    x, w = r(3), r(3)
    y = to_static(power)(x, w, torch.tensor(3)).sum()
    first = torch.autograd.grad(y, [x, w], retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(y, [x, w]), first)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, [x, w])


def exponential(x):
    return exponential(x / 2).exp() if x.sum() > 1 else x * 1


def test_a_write_to_what_a_frame_holds_is_noticed():
    x = torch.ones(3, requires_grad=True)
    y = to_static(exponential)(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_results_that_frames_hold_are_let_go():
    converted = to_static(exponential)
    converted(torch.ones(3, requires_grad=True))
    gc.collect()
    gc.disable()
    try:
        found = weakref.ref(converted(torch.ones(3, requires_grad=True)))
        assert found() is None
    finally:
        gc.enable()


def test_a_gradient_inside():
    def f(x, n):
        w = torch.ones(3, requires_grad=True)

        def go(y, n):
            return go(y, n - 1) * w if n > 0 else y * w

        go(x, n).sum().backward()
        return w.grad

    x = r(3, grad=False)
    torch.testing.assert_close(to_static(f)(x, torch.tensor(3)), f(x, torch.tensor(3)))


def writes(x, n):
    y = torch.zeros(3)
    y += x
    return writes(y * 2, n - 1) * x if n > 0 else y


def test_what_is_left_to_autograd(same_gradients):
    with pytest.raises(NotDifferentiable, match="memory is written"):
        halves_of(writes, r(3), torch.tensor(2))
    x = r(3)
    (found,) = torch.autograd.grad(to_static(writes)(x, torch.tensor(2)).sum(), x)
    (wanted,) = torch.autograd.grad(writes(x, torch.tensor(2)).sum(), x)
    torch.testing.assert_close(found, wanted)
