"""A trace in which calls of torch are recorded, and branches and loops are staged by hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runtime.tracer.recording.session import Session
from tests.runtime.tracer.control.staging import Staging


def _trace_once(test: Callable[..., Any], given: dict[str, Any]) -> None:
    """Named as the function that begins a trace: what pytest's frames hold is not taken for the user's."""
    test(**given)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    names = inspect.signature(pyfuncitem.obj).parameters
    _trace_once(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names})
    return True


@pytest.fixture
def staging(session: Session) -> Iterator[Staging]:
    """A trace in which calls of torch are recorded."""
    made = Staging(session)
    made.enter()
    yield made
    made.leave()
