"""Gradients through lists whose length is only known at run time."""

import pytest
import torch

from dy2static import to_static


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)


def r(*shape, grad=True):
    return torch.randn(*shape, requires_grad=grad)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_append_and_stack(same_gradients, n):
    def f(x, w, n):
        out = []
        h = x
        i = torch.tensor(0)
        while i < n:
            h = torch.tanh(h @ w)
            out.append(h)
            i = i + 1
        out.append(x)
        return torch.stack(out), torch.stack(out, -1), len(out)

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n))


@pytest.mark.parametrize("n", [1, 2, 6])
def test_every_list_operation(same_gradients, n):
    def f(x, w, n):
        a = []
        b = [x]
        i = torch.tensor(0)
        s = x.sum() * 0
        while i < n:
            h = torch.tanh(b[-1] @ w)
            b.append(h)
            if h.sum() > 0:
                a.append(h * 2)
            else:
                a.append(x)
            if len(b) > 3:
                s = s + b.pop(0).sum()
            if len(b) > 2:
                s = s + b.pop(-2).square().sum()
            a[0] = a[0] * 1.5
            i = i + 1
        c = a + b
        for t in c[1:3]:
            s = s + t.sin().sum()
        c.extend(b)
        return torch.cat(c, 1), s, torch.stack(b)

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n))


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("use", [None, [0]])
def test_a_list_that_is_returned(same_gradients, n, use):
    def f(x, w, n):
        out = []
        i = torch.tensor(0)
        h = x
        while i < n:
            h = torch.tanh(h @ w)
            out.append(h)
            i = i + 1
        return h, out

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n), use=use)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_item_is_read_in_another_loop(same_gradients, n):
    def f(x, w, n):
        states = []
        h = x
        for _ in range(n.item()):
            h = torch.tanh(h @ w)
            states.append(h)
        y = x
        for _ in range(n.item()):
            c = torch.zeros_like(x)
            for k in states:
                if k.sum() > 0:
                    c = c + (k * y).sum() * k
            y = torch.tanh(y + c * 0.1)
        return y

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_items_that_are_tuples_and_numbers(same_gradients, n):
    def f(x, w, n):
        items = []
        h = x
        for t in range(n.item()):
            h = torch.tanh(h @ w)
            items.append((h, t, h.sum()))
        s = x.sum()
        for a, t, b in items:
            s = s + a.mean() * t + b
        return s

    same_gradients(f, r(3, 3), r(3, 3), torch.tensor(n))


@pytest.mark.parametrize("n", [1, 4])
def test_items_of_different_sizes(same_gradients, n):
    def f(x, n):
        parts = []
        h = x
        for _ in range(n.item()):
            h = torch.cat([h, h[:1] * 1.1])
            parts.append(h)
        return torch.cat(parts), torch.cat(parts, -2).sum()

    same_gradients(f, r(2, 3), torch.tensor(n))


def test_items_that_need_no_gradient(same_gradients):
    def f(x, n):
        parts = [torch.ones(3)]
        for t in range(n.item()):
            parts.append(x * t if t > 0 else torch.zeros(3))
        return torch.stack(parts)

    same_gradients(f, r(3), torch.tensor(3), numeric=False)


def test_a_returned_item_is_not_held_by_its_node():
    import gc
    import weakref

    def f(x, n):
        out = []
        for _ in range(n.item()):
            x = torch.tanh(x)
            out.append(x)
        return out

    gc.collect()
    gc.disable()
    try:
        items = to_static(f)(r(3), torch.tensor(3))
        alive = [weakref.ref(item) for item in items]
        del items
        assert [one() for one in alive] == [None] * 3
    finally:
        gc.enable()


def _copy_is_read(x, n, out):
    for _ in range(n.sum()):
        for t in list(out):
            x = x + t * 0.1
            out.append(x * 2)
        out.append(x * 3)
    return x, out


def _two_lists_of_one(x, n, out):
    other = list(out)
    for _ in range(n.sum()):
        x = x + out[-1] + other[0]
        out.append(x * 2)
        other.append(x * 0.5 + out[0])
    return x, out, other, torch.stack(out + other)


def _on_two_paths(x, n, out):
    for i in range(n.sum()):
        before = list(out)
        if i > 0:
            for t in before:
                x = x + t * 0.1
                out.append(x * 2)
            x = x + before[0]
        else:
            out.append(x + before[-1])
        x = x + before[-1]
    return x, out


def _inner_loop_over_both(x, n, out):
    for _ in range(n.sum()):
        start = out[:]
        for t in start:
            for u in start[:2]:
                x = x + t * u * 0.1
                out.append(x)
            out[0] = x * 0.5
    return x, out, start


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("f", [_copy_is_read, _two_lists_of_one, _on_two_paths, _inner_loop_over_both])
def test_a_list_is_read_as_it_was_while_it_grows(same_gradients, f, n):
    def call(x, n):
        return f(x, n, [x * 0.3])

    same_gradients(call, r(3), torch.tensor(n))
