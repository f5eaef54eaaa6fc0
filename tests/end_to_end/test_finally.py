"""A finally block that leaves: it swallows exceptions, and those only which Python would swallow."""

from __future__ import annotations

import pytest
import torch

import dy2static
from dy2static.errors import TraceError
from tests.oracle import check

CALLS = [(torch.full((1,), value, requires_grad=True),) for value in (-1.0, 1.0, 2.0, 3.0, 7.0)]


def breaks(x):
    for _ in range(3):
        try:
            if x.sum() > 2:
                raise ValueError("a")
            x = x + 1
        finally:
            break
    return x


def continues(x):
    for _ in range(3):
        try:
            if x.sum() > 2:
                raise ValueError("a")
            x = x + 1
        finally:
            x = x * 2
            continue
    return x


def breaks_on_a_tensor(x):
    while x.sum() < 10:
        x = x + 1
        try:
            if x.sum() > 5:
                raise ValueError("a")
        finally:
            if x.sum() > 7:
                break
    return x


def with_a_handler(x):
    n = 0
    for _ in range(4):
        try:
            x = x + 1
            if x.sum() > 4:
                raise ValueError("a")
            n = n + 1
        except ValueError:
            n = n + 10
        finally:
            n = n + 100
            if n > 300:
                break
    else:
        n = -n
    return x * n


def known_exceptions(x):
    for i in range(3):
        try:
            x = x + 1
            raise KeyError(i)
        finally:
            if i < 2:
                continue
    return x


def returns(x):
    try:
        x = x * 2
        if x.sum() > 3:
            raise ValueError("a")
    finally:
        if x.sum() < 5:
            return x - 100
    return x


@pytest.mark.parametrize("function", [
    breaks, continues, breaks_on_a_tensor, with_a_handler, known_exceptions, returns,
], ids=lambda f: f.__name__)  # fmt: skip
def test_a_finally_that_leaves(function):
    check(function, *CALLS)


def test_where_the_body_leaves_too_an_error_is_not_swallowed():
    def f(x):
        for _ in range(3):
            try:
                if x.sum() > 2:
                    raise ValueError("a")
                return x
            finally:
                break
        return x * 7

    with pytest.raises(TraceError) as caught:
        dy2static.to_static(f)(torch.ones(1))
    assert "both a try block and its finally block leave" in str(caught.value)


def test_where_the_body_leaves_too_python_values_are_fine():
    def f(x, n):
        for _ in range(3):
            try:
                if n > 2:
                    raise ValueError("a")
                return x
            finally:
                if n > 1:
                    break
        return x * 7

    check(f, *((torch.ones(1), n) for n in (0, 2, 5)))
