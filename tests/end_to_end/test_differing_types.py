"""Tensors whose dtype or number of dimensions differs between paths or iterations: exactly eager's, everywhere."""

from __future__ import annotations

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from tests.oracle import check, same


def vec(*values):
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


BOTH = ((vec(1.0, 2.0),), (vec(-1.0, -2.0),))
LOOP = ((vec(1.0, 2.0),), (vec(-1.0, -2.0),), (vec(4.0, 3.0),))


def dtype_is_read(x):
    y = x if x.sum() > 0 else x.double()
    z = y * 2 + 1
    return z, z.dtype, z.sum().item(), y.dtype == torch.float64, y.is_floating_point()


def integers_or_floats(x):
    y = x if x.sum() > 0 else x.long()
    return y + 1, y > 0, (y > 0).any().item(), y.float() + x, y.sum().item(), int(y.sum().item()), y.tolist()


def beside_others(x):
    y = x if x.sum() > 0 else x.long()
    return torch.where(y > 0, y, 0), torch.add(x, y), x + y, x * y, y @ y, torch.matmul(y, y), y.mul(x), x.mul(y)


def made_like_it(x):
    y = x if x.sum() > 0 else x.long()
    return [y, y + 1], {"a": y}, torch.zeros_like(y), torch.zeros(2, dtype=y.dtype), y.new_zeros(3)


def in_lists(x):
    y = x if x.sum() > 0 else x.double()
    return torch.stack([y, y * 2]), torch.cat([y, x], dim=0), torch.einsum("i,i->", y, y), torch.broadcast_tensors(y, x)


def rank_is_read(x):
    y = x if x.sum() > 0 else torch.stack([x, x * 2])
    z = y * 2
    return z, z.dim(), z.shape, y.sum(-1), y.reshape(-1), y.size(0), len(y), y.mean(), torch.relu(y)


def rank_decides(x):
    y = x if x.sum() > 0 else torch.stack([x, x * 2])
    if y.dim() == 1:
        return torch.dot(y, x)
    return y @ x


def rank_in_layers(x):
    y = x if x.sum() > 0 else torch.stack([x, x])
    f = torch.nn.functional
    return f.linear(y, torch.ones(2, 2)), f.softmax(y, dim=-1), f.layer_norm(y, (2,))


def rows(x):
    y = x if x.sum() > 0 else torch.stack([x, x, x])
    s = 0
    for row in y:
        s = s + row.sum()
    return s


def unpacked(x):
    y = x if x.sum() > 0 else torch.stack([x, x])
    a, b = y
    return a + b, y[0], y[-1], y[..., 0], y[None]


def decides(x):
    y = x.sum() if x.sum() > 0 else x.long().sum()
    if y > 0:
        return y + 1
    if y:
        return y - 1
    return y


def written(x):
    y = x * 1 if x.sum() > 0 else x.double()
    y[0] = 5.0
    return y * 2


def stored_in_rows(x):
    y = x if x.sum() > 0 else x.double()
    out = torch.zeros(2, 2)
    out[0] = y
    out[1, 0] = y[0]
    return out


@pytest.mark.parametrize("function", [
    dtype_is_read, integers_or_floats, beside_others, made_like_it, in_lists, rank_is_read, rank_decides,
    rank_in_layers, rows, unpacked, decides, written, stored_in_rows,
])  # fmt: skip
def test_after_a_branch(function):
    check(function, *BOTH)


def int_to_float(x):
    total = torch.zeros((), dtype=torch.int64)
    i = torch.tensor(0)
    while i < x.sum():
        total = total + x[0]
        i = i + 1
    return total * 2, total.dtype, total + x, total.item()


def float_to_double(x):
    y, i = x, torch.tensor(0)
    while i < x.sum():
        y = y.double() * 2
        i = i + 1
    return (y + 1).sum(), y.dtype == torch.float64


def zero_to_one_dimension(x):
    y, i = torch.tensor(0.0), torch.tensor(0)
    while i < x.sum():
        y = y + x
        i = i + 1
    return y.sum(), y.dim(), y.shape, y * 2


def alternating(x):
    y, i = x, torch.tensor(0)
    while i < x.sum():
        y = y.double() * 2 if i % 2 == 0 else y.float() + 1
        i = i + 1
    return y


def branch_then_loop(x):
    y = x if x.sum() > 0 else x.double()
    while y.sum() < 10:
        y = y + y.abs() + 1
    return y


def nested(x):
    y, i = torch.tensor(0), torch.tensor(0)
    while i < x.sum():
        j = torch.tensor(0)
        while j < 2:
            y = y + x.sum() if j == 0 else y * 2
            j = j + 1
        i = i + 1
    return y + 1


@pytest.mark.parametrize("function", [
    int_to_float, float_to_double, zero_to_one_dimension, alternating, branch_then_loop, nested,
])  # fmt: skip
def test_over_a_loop(function):
    check(function, *LOOP)


def ever_more_dimensions(x):
    y, i = x, torch.tensor(0)
    while i < x.sum():
        y = y.unsqueeze(0)
        i = i + 1
    return y


def ever_more_items(x):
    y, i = (), torch.tensor(0)
    while i < x.sum():
        y = y + (x,)
        i = i + 1
    return y


def test_what_never_ends_is_named():
    never = r"D2S250.*'y' never reaches a fixed structure: .* 'y' was a float32 tensor of 1\d "
    with pytest.raises(TraceError, match=never):
        check(ever_more_dimensions, *LOOP)


def test_a_tuple_of_ever_more_items():
    check(ever_more_items, *LOOP)


class Changing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        y = torch.zeros(2, dtype=torch.int64)
        while y.sum() < 3:
            y = y + self.linear(x).abs() + 1
        return y if x.sum() > 0 else torch.stack([y, y])


def test_saved_and_trained_again(tmp_path):
    layer = dy2static.to_static(Changing())
    inputs = [torch.ones(2), -torch.ones(2)]
    expected = [layer(x) for x in inputs]
    dy2static.save(layer, tmp_path / "layer", input_spec=[dy2static.InputSpec([2])])
    loaded = dy2static.load(tmp_path / "layer")
    for x, y in zip(inputs, expected):
        got = loaded(x)
        same(got, y)
        grads = torch.autograd.grad(y.sum(), list(layer.parameters()))
        same(list(torch.autograd.grad(got.sum(), list(loaded.parameters()))), list(grads))
