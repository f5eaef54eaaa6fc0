"""Operators whose parts have no shape on unknown sizes, and ``out=`` where only some paths need a gradient."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

import dy2static
from tests.oracle import check

LONG = torch.arange(20.0).reshape(20, 1)
SLICED = [(LONG.clone().requires_grad_(), torch.tensor(n)) for n in (2, 12)] + [(LONG, torch.tensor(15))]


def padded(x, n):
    k = int(n)
    return pad_sequence([x[:k], x[k:], x], batch_first=True)


def padded_beside_a_fixed_size(x, n):
    out = pad_sequence([x[: int(n)], torch.ones(5, 1)])
    return out, out.shape[0], out.size(0) * 2


def padded_on_a_path(x, n):
    k = int(n)
    if x.sum() > 0:
        return pad_sequence([x[:k], x[k:]]) * 2
    return pad_sequence([x[:1], x[1:]])


def padded_in_a_loop(x, n):
    i = 0
    while i < n:
        x = pad_sequence([x[: i + 1], x[i + 1 :]], batch_first=True).sum(0)
        i += 1
    return x


def blocks(x, n):
    k = int(n)
    return torch.block_diag(x[:k], x[k:]), torch.cartesian_prod(x[:k, 0], x[:2, 0])


@pytest.mark.parametrize("f", [padded, padded_beside_a_fixed_size, padded_on_a_path, padded_in_a_loop, blocks])
def test_slices_of_unknown_size(f):
    check(f, *SLICED)


def test_slices_of_unknown_size_after_loading(tmp_path):
    static = dy2static.to_static(padded)
    static(*SLICED[0])
    dy2static.save(static, str(tmp_path / "f"))
    loaded = dy2static.load(str(tmp_path / "f"))
    for x, n in SLICED:
        torch.testing.assert_close(loaded(x, n), padded(x, n))


def on_one_path(a, w):
    b = a * 1
    if a.sum() > 0:
        b = b * w
    if a.sum() <= 0:
        torch.mul(b, 2, out=b)
    return b


def in_some_iteration(a, w):
    b = a * 1
    i = 0
    while i < a.sum():
        if i < 1:
            torch.mul(b, 2, out=b)
        else:
            b = b * w
        i += 1
    return b


def after_one_path(a, w):
    b = a * 1
    if a.sum() > 0:
        b = b * w
    torch.mul(b, 2, out=b)
    return b


def into_a_new_one(a, w):
    out = torch.zeros(2)
    if a.sum() > 0:
        torch.mul(a, w, out=out)
    else:
        torch.mul(a, 2, out=out)
    return out


def under_no_grad(a, w):
    b = a * 1
    if a.sum() > 0:
        with torch.no_grad():
            torch.mul(b, 2, out=b)
        return b * w
    torch.add(a.detach(), 1, out=b)
    return b


def into_an_argument(a, w):
    if a.sum() > 0:
        a = a * w
    else:
        torch.mul(a, 2, out=a)
    return a


@pytest.mark.parametrize("leaf", [False, True])
@pytest.mark.parametrize(
    "f", [on_one_path, in_some_iteration, after_one_path, into_a_new_one, under_no_grad, into_an_argument]
)  # fmt: skip
def test_out_where_only_some_paths_need_a_gradient(f, leaf):
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    calls = [torch.tensor(values, requires_grad=leaf) for values in ([1.0, 2.0], [-1.0, -2.0])]
    check(f, *((a, w) for a in calls), *((a, w.detach()) for a in calls))
