"""A container whose content differs between paths is stored to a slice of a list: by its items, whatever its class."""

from __future__ import annotations

from collections import deque

import pytest
import torch

from tests.oracle import check


def keys(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    xs, ys, zs = [9], [9, 8, 7], [6]
    xs[0:1] = d
    ys[1:] = d.keys()
    zs[:] = d.values()
    return xs, ys, zs, len(xs)


def members(x):
    s = {1}
    if x.sum() > 0:
        s.add(2)
    xs = [9]
    xs[:] = s
    xs.append(3)
    return xs


def items_of_a_deque(x):
    q = deque([x])
    if x.sum() > 0:
        q.append("b")
    xs = [0]
    xs[0:1] = q
    return xs


def every_second(x):
    d, xs = {"a": 1}, [9, 8, 7]
    if x.sum() > 0:
        d["b"] = 2
    else:
        d["c"] = x
    xs[::2] = d
    return xs


def one_of_two(x):
    ys = [1, 2] if x.sum() > 0 else (3,)
    xs = [9]
    xs[0:1] = ys
    return xs


@pytest.mark.parametrize("function", [keys, members, items_of_a_deque, every_second, one_of_two])
def test_equal_eager(function):
    check(function, *((torch.tensor([value, 1.0]),) for value in (2.0, -2.0)))
