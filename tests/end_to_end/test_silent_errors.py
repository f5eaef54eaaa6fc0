"""One test for each family of silently wrong results that prototypes and other converters were seen to give."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check, check_module, same


def rand(*shape, seed=0, grad=False):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).requires_grad_(grad)


def test_joined_layouts_then_reshape():
    def f(x):
        if x.sum() > 0:
            y = x.t()
        else:
            y = x.t().contiguous()
        return y.reshape(-1) * 2

    check(f, (rand(3, 4, grad=True),), (-rand(3, 4, grad=True).detach().abs(),))


def test_joined_layouts_then_write_is_refused():
    def f(x):
        z = x * 1
        if x.sum() > 0:
            y = z.t()
        else:
            y = z.t().contiguous()
        v = y.reshape(-1)
        v.add_(1)
        return y

    with pytest.raises(TraceError, match="in-place write") as caught:
        dy2static.to_static(f)(rand(3, 4))
    assert "v.add_(1)" in str(caught.value)


def test_float_arithmetic_is_not_simplified():
    def f(t):
        n = t.item()
        return (n + 1e16) - 1e16, n * float("inf") * 0

    check(f, (torch.tensor(1.5),), (torch.tensor(-7.25),))


def test_infinity_times_zero():
    def f(t):
        return float("inf") * t.item(), t.item() * 0

    check(f, (torch.tensor(0.0),), (torch.tensor(float("inf")),))


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x, t):
        n = int(t)
        text = f"{n} and {n:03d}"
        total = x
        for i in range(n):
            total = total + i
        return self.layers[n](total), text, isinstance(n, int), isinstance(n, bool), min(n, 3), max(n, 1), n


def test_staged_int_is_an_int_everywhere():
    check_module(Chosen, *[(rand(2, 4), torch.tensor(n)) for n in (0, 1, 2, -1)])


def test_no_grad_region():
    def f(x):
        with torch.no_grad():
            y = x * 3
        z = x * y
        if z.sum() > 0:
            with torch.no_grad():
                z = z * 2
        return z + x

    check(f, (rand(3, grad=True),), ((rand(3) * 0).requires_grad_(),))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 100 + x * ctx.k, None


def test_custom_function_keeps_its_backward():
    def f(x):
        y = Doubled.apply(x, 2)
        if y.sum() > 0:
            y = Doubled.apply(y, 3)
        return y

    check(f, (rand(3, grad=True),), (rand(3, seed=1, grad=True),), ((-rand(3).abs()).requires_grad_(),))


def test_list_appended_in_both_branches():
    def f(x):
        out = []
        if x.sum() > 0:
            out.append(x)
        else:
            out.append(-x)
        out.append(x * 2)
        return out

    check(f, (rand(3).abs(),), (-rand(3).abs(),))


def test_overlapping_arguments():
    def f(x, y):
        x.add_(1)
        return y * 2

    converted = dy2static.to_static(f)
    for _ in range(2):
        a, b = torch.arange(4.0), torch.arange(4.0)
        assert torch.equal(converted(a, a[1:]), f(b, b[1:])) and torch.equal(a, b)
    a, b = torch.arange(4.0), torch.arange(3.0)
    assert torch.equal(converted(a, b), torch.arange(3.0) * 2)


def test_identity_of_arguments():
    def f(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
        return x, y

    x = rand(3)
    assert dy2static.to_static(f)(x)[0] is x


def test_identity_of_arguments_on_one_path():
    def f(x):
        while x.norm() < 1:
            x = x * 2
        return x

    converted = dy2static.to_static(f)
    for scale, itself in ((10.0, True), (0.1, False)):
        x = torch.full((3,), scale, requires_grad=True)
        y = converted(x)
        assert (y is x) == itself
        (y * 3).sum().backward()
        z = torch.full((3,), scale, requires_grad=True)
        (f(z) * 3).sum().backward()
        assert torch.equal(x.grad, z.grad)


def test_view_of_an_argument_stays_a_view():
    f = dy2static.to_static(lambda x: x[0])
    x = torch.zeros(2, 2)
    f(x).fill_(1)
    assert x.sum() == 2


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        self.seen += 1
        a, b = self.seen.tolist()
        return x * a + b, a


def test_tolist_of_a_buffer():
    check_module(Counter, *[(rand(2),)] * 3)


def test_autocast_around_a_branch():
    def f(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            if x.sum() > 0:
                y = x @ w
            else:
                y = (x * 2) @ w
        z = x @ w
        return y, z

    calls = [(rand(3, 4, grad=True), rand(4, 4, grad=True)), (-rand(3, 4).abs(), rand(4, 4, grad=True))]
    check(f, *calls, tolerance=1e-2)
    converted = dy2static.to_static(f)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert [t.dtype for t in converted(*calls[0])] == [t.dtype for t in f(*calls[0])]


class Halves(nn.Module):
    def forward(self, x):
        if x.mean() > 0:
            return x * 0.5
        return x - 1


def test_branch_inside_sequential():
    check_module(lambda: nn.Sequential(nn.Linear(4, 4), Halves(), nn.Linear(4, 2)),
                 *[(rand(3, 4, seed=s),) for s in range(6)])


def test_threads_call_one_fresh_function():
    def f(x):
        y = x
        while y.abs().sum() > 1:
            y = y / 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    converted = dy2static.to_static(f)
    inputs = [rand(3, seed=s) * 10 for s in range(8)]
    results: list = [None] * 8
    barrier = threading.Barrier(8)

    def work(index):
        barrier.wait()
        for _ in range(20):
            results[index] = converted(inputs[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for x, y in zip(inputs, results):
        assert torch.equal(y, f(x))


def test_nested_break():
    def f(x, n):
        total = x * 0
        for i in range(4):
            for j in range(4):
                if x.sum() * j > n:
                    break
                total = total + j
            else:
                total = total + 100
            if total.sum() > 20:
                break
            total = total + 1
        return total, i, j

    check(f, *[(rand(3, seed=s).abs(), torch.tensor(float(n))) for s in range(2) for n in (0, 2, 5, 100)])


def test_loop_else_runs_unless_broken():
    def f(x):
        i = 0
        while x.sum() < 10:
            x = x + 1
            i += 1
            if x.max() > 5:
                break
        else:
            x = x * 100
        return x, i

    check(f, (torch.ones(3),), (torch.tensor([4.9, 0.0, 0.0]),), (torch.ones(3) * 9,))


def test_in_place_in_a_branch():
    def f(x):
        y = x.clone()
        v = y[1:]
        if x.sum() > 0:
            v.mul_(2)
        else:
            y[0] = 7
        return y, v

    check(f, (rand(3).abs(),), (-rand(3).abs(),))


@pytest.mark.parametrize("values", [(-1, -2), (1, True, 1.0), (0.0, -0.0, 0, False)])
def test_cache_keys_do_not_collide(values):
    def f(x, k):
        return x * 1, k, [k], type(k).__name__

    converted = dy2static.to_static(f)
    for value in values:
        same(converted(torch.ones(1), value), f(torch.ones(1), value), bits=True)


threshold = 1.0


class Threshold(nn.Module):
    def __init__(self):
        super().__init__()
        self.threshold = 1.0

    def forward(self, x):
        if x.sum() > self.threshold:
            return x * threshold
        return x - self.threshold


def test_attributes_and_globals_are_not_frozen():
    global threshold
    layer = dy2static.to_static(Threshold())
    eager = Threshold()
    x = torch.full((3,), 0.5)
    for attribute, value in ((1.0, 1.0), (2.0, 1.0), (2.0, 5.0), (0.1, 5.0)):
        layer.threshold = eager.threshold = attribute
        threshold = value
        assert torch.equal(layer(x), eager(x))
    threshold = 1.0


def test_unbound_name_raises_as_eager():
    def f(x):
        if x.sum() > 0:
            y = x * 2
        return y

    check(f, (rand(3).abs(),), (-rand(3).abs(),))


def test_starred_loop_target():
    def f(x, rows):
        total = x
        for first, *rest in rows:
            if total.sum() > 0:
                total = total + first
            else:
                total = total - len(rest)
        return total, first, rest

    check(f, (torch.ones(2), [(1, 2, 3), (4,)]), (-torch.ones(2), [(1, 2, 3), (4, 5)]))


class Base(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


class Middle(Base):
    def forward(self, x):
        y = super().forward(x)
        if y.max() > 1:
            y = y * 2
        return y


class Last(Middle):
    def forward(self, x):
        return super().forward(x) + super(Middle, self).forward(x)


def test_super_three_levels_deep():
    check_module(Last, (torch.ones(3),), (-torch.ones(3),), (torch.zeros(3),))


def test_integers_are_64_bits():
    def f(t):
        n = int(t)
        return n * 2, n + 1, t.item()

    check(f, (torch.tensor(2**40 + 1),), (torch.tensor(-(2**62)),))


def test_assert_keeps_its_message():
    def f(x):
        if x.sum() > 0:
            assert x.max() < 2, f"too large for {x.shape[0]}"
        return x

    check(f, (torch.ones(3),), (torch.ones(3) * 5,), (-torch.ones(3),))


def test_raise_in_a_branch_only_if_taken():
    def f(x):
        if x.sum() > 0:
            raise ValueError("positive")
        return x

    check(f, (torch.ones(3),), (-torch.ones(3),))


def _bound_here_and_by_a_function(x):
    m = 1

    def bump(q):
        nonlocal m
        m = m + 1
        return q

    if x.sum() > 0:
        m = 0
    else:
        bump(x)
    for _ in range(2):
        if x.mean() > 2:
            m = m * 10
            if x.sum() > 7:
                bump(x)
        else:
            bump(x)
    return m


def test_a_name_bound_on_one_path_and_by_a_function_on_another():
    calls = [(torch.full((3,), value),) for value in (1.0, -1.0, 2.2, 3.0)]
    check(_bound_here_and_by_a_function, *calls)
    check(_bound_here_and_by_a_function, *reversed(calls))
