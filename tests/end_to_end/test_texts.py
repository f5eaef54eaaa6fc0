"""The text of tensors that need a gradient is eager's: it names the node of autograd's graph that made them."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings

import pytest
import torch
import torch.nn.functional as F

import dy2static
from dy2static.errors import TraceError

LOGGER = logging.getLogger("tests.texts")
LINEAR = torch.nn.Linear(3, 2)
torch.nn.init.ones_(LINEAR.weight)
torch.nn.init.zeros_(LINEAR.bias)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def ways_to_make_text(x):
    print(x)
    y = x * 2
    print(y)
    print(f"{y} and {y!r}", str(y), repr(y), "%s" % y, "{}".format(y), "{!r:>60}".format(y))
    print([y, (x.sin(), {"a": x.cos()})], f"{[x * 2]}")
    print(f"{y.sum()} {y.sum():.2f}", y.sum())
    return y


def warned_and_logged(x):
    y = x * 2
    warnings.warn(f"w {y}")
    LOGGER.warning("l %s %.1f", y, y.sum())
    return y


def raised(x):
    y = x * 2
    if y.sum() > 0:
        raise ValueError(f"bad {y}")
    raise ValueError("no", y)


def asserted(x):
    y = x * 2
    if y.sum() < 0:
        raise AssertionError(f"negative {y}")
    return y


def leaves(x):
    z = x.detach().requires_grad_()
    w = torch.ones(3, requires_grad=True)
    p = torch.nn.Parameter(torch.ones(3))
    print(z, w, z * w, p, p * x, x.detach(), (x * 2).detach())
    return z * w


def views(x):
    y = x * 1
    v, w = y[0], y[:2]
    print(v, w)
    y.mul_(2)
    print(y, v, w)
    w.add_(1)
    print(w, y)
    y.unsqueeze_(0)
    print(y)
    return y


def written_by_views(x):
    b = torch.zeros(3)
    b[0] = x[0]
    print(b)
    b.add_(x)
    c = b.view(3)
    print(b, c)
    b.mul_(2)
    print(c)
    return b


def written_through_data(x):
    y = x * 1
    y.data.mul_(2)
    v = y[1]
    y.data.mul_(2)
    print(y, v)
    return y


def without_gradients(x):
    with torch.no_grad():
        y = x * 2
        v = x[0]
        print(y, v)
    with torch.enable_grad():
        print(x * 2)
    z = x * 1
    with torch.no_grad():
        z.mul_(2)
    print(z, z[0])
    return x * 1


def argument_written(x):
    with torch.no_grad():
        x.mul_(2)
    print(x)
    return x * 1


def composites(x):
    print(F.linear(x[None, None], torch.ones(4, 3), torch.ones(4)), LINEAR(x), LINEAR.weight, LINEAR.bias.sum())
    print(F.dropout(x * 2, 0.0), F.dropout(x * 2, training=False), x.contiguous(), (x * 1).reshape(3))
    print((x * 1).to(torch.float32), (x * 1).to(torch.float64), Twice.apply(x))
    q = x.view(1, 1, 3, 1).expand(1, 1, 3, 4) * 1
    print(F.scaled_dot_product_attention(q, q, q), torch.fft.fft(x), torch.view_as_real(torch.complex(x, x)))
    return x * 1


def autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        print(LINEAR(x), x @ x, torch.einsum("i,i->", x, x))
    return x * 1


def sizes_from_data(x):
    y = x * 2
    i = (x.sum() * 0).int()
    print(y[i], y[: i + 1], y[y > 100], y.masked_select(y > 0), torch.cat([y, y[: len(x) - 1]]))
    a, b, _ = y.unbind(0)
    print(a, b, y.max(0).values, y.split(2))
    return y


def one_path_or_the_other(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x.sin()
    print(y, y + 1)
    z = x.tan() if x.sum() > 0 else x
    print(z)
    return y


def the_same_on_both(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x * 3
    print(y)
    return y


def a_history_on_one_path(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x.detach()
    print(y)
    z = x
    if x.sum() > 0:
        z = torch.zeros(3, requires_grad=True)
    print(z)
    return y + z


def written_on_one_path(x):
    y = x * 2
    v = y[0]
    if x.sum() > 0:
        y.mul_(2)
    print(v, y)
    return y


def the_same_on_one_path(x):
    y = x * 2
    if x.sum() > 0:
        z = y
    else:
        z = y.sin()
    print(z)
    y.add_(1)
    print(z, y)
    return z


def carried_by_a_loop(x):
    i = 0
    y = x.exp()
    while y.sum() < 100 and i < 3:
        print(y)
        y = y * 2
        print(y)
        i = i + 1
    print(y)
    return y


def only_after_a_loop(x):
    i = 0
    y = x.exp()
    while y.sum() < 100 and i < 3:
        y = y * 2
        i = i + 1
    print(y)
    return y


def nested(x):
    i = 0
    y = x.exp()
    while y.sum() < 100 and i < 3:
        if y.sum() > 30:
            y = y.sin() + 30
        else:
            y = y * 4
        j = 0
        while j < i:
            print("in", y)
            y = -y.abs()
            j = j + 1
        print(y)
        i = i + 1
    print(y)
    return y


def written_in_a_loop(x):
    y = x * 2
    v = y[:2]
    i = 0
    while y.sum() < 50 and i < 3:
        y[0] = y[1] * 2
        print(y, v)
        i = i + 1
    print(y, v)
    return y


def a_leaf_in_a_loop(x):
    z = x.detach().requires_grad_()
    i = 0
    while z.sum() < 100 and i < 2:
        print(z)
        z = z * 2
        i = i + 1
    print(z)
    return z * 1


def stacked(x):
    ys = []
    i = 0
    while x.sum() * 0 + i < 2:
        ys.append(x.sin())
        i = i + 1
    s = torch.stack(ys)
    print(s)
    return s


def of_an_inner_gradient(x):
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    print(g * 2)
    return g


FUNCTIONS = [
    ways_to_make_text, warned_and_logged, raised, asserted, leaves, views, written_by_views, written_through_data,
    without_gradients, argument_written, composites, autocast, sizes_from_data, one_path_or_the_other,
    the_same_on_both, a_history_on_one_path, written_on_one_path, the_same_on_one_path, carried_by_a_loop,
    only_after_a_loop, nested, written_in_a_loop, a_leaf_in_a_loop, stacked, of_an_inner_gradient,
]  # fmt: skip


class _Handler(logging.Handler):
    def emit(self, record):
        print("logged", record.getMessage())


def told(function, *, sign=1, needs=True, leaf=True, grad_mode=True):
    x = (torch.tensor([1.0, 2.0, 3.0]) * sign).requires_grad_(needs)
    out = io.StringIO()
    LOGGER.handlers, LOGGER.propagate = [_Handler()], False
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.set_grad_enabled(grad_mode):
            try:
                function(x if leaf else x.clone())
            except (ValueError, AssertionError, RuntimeError) as error:
                print(type(error).__name__, error)
    return out.getvalue(), [str(one.message) for one in caught if str(one.message).startswith("w ")]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_texts_are_those_of_eager(function):
    converted = dy2static.to_static(function)
    for sign in (1, -1):
        for options in ({}, {"leaf": False}, {"needs": False}, {"grad_mode": False}):
            assert told(converted, sign=sign, **options) == told(function, sign=sign, **options)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = LINEAR

    def forward(self, x):
        y = self.linear(x)
        print(self.linear.weight, y)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y.sin()
        while y.sum() < 100 and y.sum() > 0:
            print(y)
            y = y.exp()
        print(y)
        return y


def test_loaded_from_a_file(tmp_path):
    layer = Layer()
    spec = [dy2static.InputSpec([3], torch.float32)]
    loaded = dy2static.load(dy2static.save(dy2static.to_static(layer), tmp_path / "layer", input_spec=spec))
    for sign in (1, -1):
        expected = told(layer, sign=sign, needs=False)
        assert "grad_fn" in str(expected)
        assert told(loaded, sign=sign, needs=False) == expected
        with torch.no_grad():
            assert told(loaded, sign=sign, needs=False, grad_mode=False) == told(
                layer, sign=sign, needs=False, grad_mode=False)


def test_gradients_are_not_touched():
    def function(x):
        y = x.exp()
        while y.sum() < 100:
            print(y)
            y = y * 2
        return y

    grads = []
    for one in (function, dy2static.to_static(function)):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with contextlib.redirect_stdout(io.StringIO()):
            one(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_a_gradient_has_no_name():
    @dy2static.to_static
    def function(x):
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        print(g)
        return g

    with pytest.raises(TraceError, match="autograd node") as caught:
        function(torch.ones(3, requires_grad=True))
    assert caught.value.code == "D2S243"


def test_an_item_of_a_list_that_grows_has_no_name():
    @dy2static.to_static
    def function(x):
        ys = []
        while x.sum() > len(ys):
            ys.append(x * 2)
        print(ys[0])
        return ys[0]

    with pytest.raises(TraceError, match="a list that grows") as caught:
        function(torch.ones(3, requires_grad=True))
    assert caught.value.code == "D2S243"
