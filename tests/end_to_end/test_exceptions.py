"""Exceptions of the main path and of branches: which comes first, what is seen before, arguments and attributes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import run, same


class Refused(Exception):
    """An exception whose initialiser takes other arguments than it keeps, and that has attributes."""

    def __init__(self, code: int, *, at: Any) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.at = at


def what_comes_first(x, k):
    if x[0] > 0:
        late = x * 2
    b = x + late
    if k < 4:
        raise AssertionError("not so")
    return b


def a_staged_number_in_the_message(x, k):
    n = int((x > 0).sum())
    if k < 3:
        raise ValueError(f"bad {n}", n, k)
    return x


def a_key(x, k):
    raise KeyError(int((x > 0).sum()))


def a_tensor(x, k):
    if x.sum() > 0:
        raise ValueError("bad", x.detach(), [k, x.sum().item()])
    raise ValueError("good", x.detach() * 2)


def printed_before(x, k):
    if x.sum() > 0:
        print("positive")
    raise ValueError("end")


def drawn_before(x, k):
    y = torch.randn(3)
    raise ValueError("end", y)


def own_class_on_a_path(x, k):
    if x.sum() > 0:
        raise Refused(3, at=x.detach() * 2)
    return x * 2


def own_class_at_the_end(x, k):
    n = int((x > 0).sum())
    raise Refused(k, at=n)


def own_class_known_at_once(x, k):
    y = x * 2
    raise Refused(k, at=y.shape[0])


def attributes_of_a_builtin(x, k):
    error = ValueError("bad")
    error.code = k
    error.n = (x > 0).sum().item()
    if x.mean() > 0:
        raise error
    return x


def fields_of_a_builtin(x, k):
    error = OSError(k, "no such thing")
    error.cls = "taken"
    if x.mean() > 0:
        raise error
    return x


def alike(converted, function, mine, theirs, k):
    """Both do the same; of an exception the arguments and attributes, and ``errno``, which is in neither."""
    got, expected = run(converted, [mine, k], 7), run(function, [theirs, k], 7)
    same(got, expected)
    same(getattr(got.error, "errno", None), getattr(expected.error, "errno", None), "errno")


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        what_comes_first, a_staged_number_in_the_message, a_key, a_tensor, printed_before, drawn_before,
        own_class_on_a_path, own_class_at_the_end, own_class_known_at_once, attributes_of_a_builtin,
        fields_of_a_builtin,
    ],
)  # fmt: skip
def test_as_in_eager(function, needs_gradient):
    converted = to_static(function)
    for sign in (1.0, -1.0):
        x = torch.full((3,), sign, requires_grad=needs_gradient)
        for k in (1, 5):
            alike(converted, function, x, x, k)


def test_a_mistake_known_at_once_keeps_the_very_exception():
    error = Refused(1, at=object())

    def function(x):
        y = x * 2
        raise error
        return y

    with pytest.raises(Refused) as caught:
        to_static(function)(torch.ones(3))
    assert caught.value is error


def written_first(x, k):
    x += 1
    raise ValueError("after")


def written_on_a_path(x, k):
    if x.sum() > 0:
        x[0] += 1
    return x * 2


def written_in_a_try(x, k):
    try:
        x += 1
    except RuntimeError:
        x = x * 3
    return x


@pytest.mark.parametrize("function", [written_first, written_on_a_path, written_in_a_try])
def test_a_write_to_a_leaf_raises_where_it_is(function):
    converted = to_static(function)
    for leaf in (True, False, True):
        for sign in (1.0, -1.0):
            x = torch.full((3,), sign, requires_grad=True)
            mine, theirs = (x, x) if leaf else (x * 1, x * 1)
            alike(converted, function, mine, theirs, 1)
