"""What the tracer does because the user's code says so: what it raises is the user's (see ``faults``)."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_CODES: set[CodeType] = set()


def acts_for_user(function: _Function) -> _Function:
    """Of a function of ours in which nothing can go wrong but with the user's values."""
    _CODES.add(function.__code__)
    return function


def is_for_user(code: CodeType) -> bool:
    """Whether what a function of ours raises, or what it calls in C, is the user's."""
    return code in _CODES


@acts_for_user
def theirs(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``."""
    return function(*args, **kwargs)
