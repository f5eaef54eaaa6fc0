"""Lists and dicts that one path made: it may change them, and what other paths hold is no concern of theirs."""

from __future__ import annotations

import pytest
import torch

from tests.oracle import check

ONE = torch.ones(2)
CALLS = [(sign * ONE, size * ONE) for sign in (1, -1) for size in (1, 0, 2)]


def list_of_own_tensors(x, b):
    if x.sum() > 0:
        out = [x * 2]
        out.append(x)
    else:
        out = [b]
    out.append(b)
    return len(out), out[0]


def dict_of_own_tensors(x, b):
    if x.sum() > 0:
        out = {"a": x * 2}
        out["b"] = x
    else:
        out = {"a": b, "b": x}
    out["b"] = out["b"] + b
    return out["a"], out["b"]


def dict_filled_on_a_path(x, b):
    if x.sum() > 0:
        out = {}
        out["a"] = x * 2
        out["b"] = x
    else:
        out = {"a": b, "b": x}
    return out["a"] + out["b"]


def rows_of_a_loop(x, b):
    sizes = []
    for i in range(3):
        if x.sum() > i:
            row = [x * i]
            if b.mean() > 0:
                row.append(b)
        else:
            row = []
        sizes.append(len(row))
    return sizes


def changed_on_an_inner_path_and_after_it(x, b):
    if x.sum() > 0:
        if b.mean() < 1:
            out = [x]
            out.append(x)
        else:
            out = [b]
        out.append(x)
    else:
        out = [b]
    out.append(b)
    return len(out), out[0]


def sum_of_a_list_that_grew(x, b):
    out = []
    if x.sum() > 0:
        out.append(x)
    if b.mean() < 1:
        out = [x]
    else:
        if len(out) > 0:
            out = out + [x]
    return len(out)


def sum_read_on_a_path_and_after_it(x, b):
    out = []
    if b.sum() > 0:
        out.append(x)
    new = out + [b]
    if x.sum() > 0:
        y = new[0] + 1
        new.append(y)
    else:
        y = new[-1] * 2
    return len(new), new[0], y, len(out)


def sum_on_the_only_path_that_goes_on(x, b):
    out = []
    if b.sum() > 0:
        out.append(x)
    if x.sum() > -1:
        new = out + [x]
    else:
        return b
    return len(new) * new[0]


def result_of_the_only_path_that_goes_on(x, b):
    if b.sum() > 0.1:
        if x.sum() > 0.1:
            return x, 1
    elif b.dim() == 1:
        raise ValueError("the sum is small")


@pytest.mark.parametrize(
    "function",
    [
        list_of_own_tensors,
        dict_of_own_tensors,
        dict_filled_on_a_path,
        rows_of_a_loop,
        changed_on_an_inner_path_and_after_it,
        sum_of_a_list_that_grew,
        sum_read_on_a_path_and_after_it,
        sum_on_the_only_path_that_goes_on,
        result_of_the_only_path_that_goes_on,
    ],
)
def test_as_in_eager(function):
    check(function, *CALLS)
