"""Generators that a consumer leaves: one that its consumer's own line makes is nobody else's."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import check

X = torch.tensor([1.0, -2.0, 3.0])
CALLS = [(X,), (-X,), (X * 0,)]


def positive(x):
    for v in x:
        if v > 0:
            yield v


class Holder:
    def __init__(self, x):
        self.x = x

    def items(self):
        return (v for v in self.x if v > 0)

    def kept(self):
        self.made = positive(self.x)
        return self.made


def given_on_by_a_method(x):
    total = x.sum() * 0
    for v in Holder(x).items():
        if v > 2:
            break
        total = total + v
    return total, any(v > 2 for v in Holder(x).items()), next(Holder(x).items(), None)


def taken_one_by_one_without_tensors(x):
    def numbers():
        yield 1
        yield 2
        yield 3

    items = numbers()
    first = next(items)
    for n in items:
        if n == 2:
            break
    return x * first, list(items)


def without_items(x, n):
    if n == 0:
        return x * 2
    raise ValueError("v")
    yield x


def asked_for_an_item(x):
    items, found = without_items(x, 1), []
    found.append("made")
    try:
        next(items)
    except ValueError as error:
        found.append(str(error))
    return x, found


def asked_for_its_result(x):
    items = without_items(x, 0)
    try:
        next(items)
    except StopIteration as error:
        return error.value
    return x


def gone_over(x):
    return list(without_items(x, 0)), [v for v in without_items(x, 0)], x


@pytest.mark.parametrize("function", [asked_for_an_item, asked_for_its_result, gone_over], ids=lambda f: f.__name__)
def test_one_whose_yield_is_never_reached(function):
    """It is a generator for all that: it runs when an item is asked for."""
    check(function, *CALLS)


@pytest.mark.parametrize("function", [given_on_by_a_method, taken_one_by_one_without_tensors], ids=lambda f: f.__name__)
def test_like_eager(function):
    check(function, *CALLS)


def used_again_after_it_was_left(x):
    holder = Holder(x)
    total = x.sum() * 0
    for v in holder.kept():
        if v > 2:
            break
        total = total + v
    return total, list(holder.made)


def test_one_that_was_left_is_not_used_again():
    with pytest.raises(Dy2StaticError, match="used again") as caught:
        to_static(used_again_after_it_was_left)(X)
    assert caught.value.code == "D2S266"
