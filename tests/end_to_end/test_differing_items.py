"""Lists that grow by items of several kinds: numbers, tensors of any dtype and rank, None, text, tuples, dicts."""

from __future__ import annotations

import pytest
import torch

import dy2static
from tests.oracle import check, same


def vec(*values):
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


CALLS = ((vec(1.0, 2.0),), (vec(-1.0, -2.0),), (vec(3.0, 2.0),))


def appended_after_the_loop(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        out.append(x * i)
        i = i + 1
    out.append(None)
    out.append(3)
    s = x
    for o in out:
        if isinstance(o, torch.Tensor):
            s = s + o
        elif o is not None:
            s = s * o
    return out, s, len(out)


def replaced(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        out.append(x * i)
        i = i + 1
    if len(out) > 0:
        out[0] = 'first'
    return out


def popped(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        out.append((x * i, None) if i > 1 else x)
        i = i + 1
    s = x
    while len(out) > 0:
        o = out.pop()
        s = s + (o[0] if isinstance(o, tuple) else o)
    return s, out


def dtypes(x):
    out = [torch.ones(2, dtype=torch.int64)]
    i = torch.tensor(0)
    while i < x.sum():
        out.append(x * i)
        i = i + 1
    return out, out[-1] + 1, out[0].dtype, out[-1].dtype, out[:2], out[::-1]


def concatenated(x):
    a = [1]
    b = [x]
    i = torch.tensor(0)
    while i < x.sum():
        a.append(2)
        b.append(x * i)
        i = i + 1
    c = a + b
    a.extend(b)
    return c, a, b


def dicts(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        if i == 1:
            out.append({'a': x, 'n': i.item()})
        else:
            out.append({'b': x * 2})
        i = i + 1
    return out


def nested_loops(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        j = torch.tensor(0)
        while j < 2:
            out.append(i.item() if j == 0 else x * j)
            j = j + 1
        i = i + 1
    return out


def only_none(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        out.append(None)
        i = i + 1
    return out, len(out)


def only_constants(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        out.append((None, 'a'))
        i = i + 1
    return out, len(out)


def concatenated_in_the_loop(x):
    out = []
    i = torch.tensor(0)
    while i < x.sum():
        out = out + [x if i > 0 else None]
        i = i + 1
    return out, len(out)


def one_of_two_lists(x):
    p = [1, x] if x.sum() > 0 else [x]
    return p, len(p), sum(p)


def one_of_two_lists_in_a_loop(x):
    p = [x]
    i = torch.tensor(0)
    while i < x.sum():
        p = [1, x] if i > 0 else ['a', x, 3]
        i = i + 1
    return p, len(p), p[-1]


def gradient_through_some(x):
    out = [None, x * 2]
    i = torch.tensor(0)
    while i < x.sum():
        out.append(x * out[-1] if i > 0 else None)
        if i == 0:
            out[2] = x * 7
        i = i + 1
    return out[-1] * 3


def read_back_in_the_loop(x):
    out = [x]
    i = torch.tensor(0)
    while i < x.sum():
        last = out[-1]
        if isinstance(last, int):
            out.append(x * last)
        else:
            out.append(5)
        i = i + 1
    return out


@pytest.mark.parametrize("function", [
    appended_after_the_loop, replaced, popped, dtypes,
    concatenated, dicts, nested_loops, only_none,
    only_constants, concatenated_in_the_loop, one_of_two_lists, one_of_two_lists_in_a_loop,
    gradient_through_some, read_back_in_the_loop,
])  # fmt: skip
def test_as_eager(function):
    check(function, *CALLS)


class Kinds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        found, i = [], torch.tensor(0)
        while i < x.sum():
            found.append(self.linear(x * i) if i > 0 else "first")
            i = i + 1
        return found, found[-1] if len(found) > 1 else None


def test_saved_and_loaded(tmp_path):
    layer = dy2static.to_static(Kinds())
    inputs = [torch.ones(2), -torch.ones(2), torch.full((2,), 2.0)]
    expected = [layer(x) for x in inputs]
    dy2static.save(layer, tmp_path / "layer", input_spec=[dy2static.InputSpec([2])])
    loaded = dy2static.load(tmp_path / "layer")
    for x, result in zip(inputs, expected):
        same(loaded(x), result)
