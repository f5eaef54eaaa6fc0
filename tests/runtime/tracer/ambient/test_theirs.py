"""Functions of ours that act for the user are known by their code; what they call gets its arguments unchanged."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from runtime.tracer.ambient.theirs import acts_for_user, is_for_user, theirs


def told(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def test_arguments_are_handed_on() -> None:
    assert theirs(told) == ((), {}) and theirs(told, 1, a=2) == ((1,), {"a": 2})
    assert theirs(told, 1, function=3, args=4, kwargs=5) == ((1,), {"function": 3, "args": 4, "kwargs": 5})
    assert theirs(functools.partial(told, 1), 2) == ((1, 2), {}) and theirs(len, [1, 2]) == 2


def test_what_is_raised_comes_out() -> None:
    with pytest.raises(ZeroDivisionError):
        theirs(divmod, 1, 0)


def test_only_what_says_so_acts_for_the_user() -> None:
    def one() -> None:
        pass

    def other() -> None:
        pass

    assert is_for_user(theirs.__code__) and not is_for_user(told.__code__) and not is_for_user(one.__code__)
    assert acts_for_user(one) is one and is_for_user(one.__code__) and not is_for_user(other.__code__)


def test_closures_of_one_code_are_one() -> None:
    def make(value: int) -> Any:
        def inner() -> int:
            return value

        return inner

    acts_for_user(make(1))
    assert is_for_user(make(2).__code__)
