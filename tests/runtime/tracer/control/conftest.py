"""Branches and loops that are staged by hand, in a function of the test."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest


def _trace_once(test: Callable[..., Any], given: dict[str, Any]) -> None:
    """Named as the function that begins a trace: what pytest's frames hold is not taken for the user's."""
    test(**given)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    names = inspect.signature(pyfuncitem.obj).parameters
    _trace_once(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names})
    return True
