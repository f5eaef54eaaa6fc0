"""Errors of a call itself (an argument that does not fit, a missing file) stand at the user's line that makes it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from runtime.errors import Dy2StaticError
from runtime.executor.traceback import trimmed
from runtime.kinds import is_a
from runtime.tracer.ambient import source_places

P = ParamSpec("P")
R = TypeVar("R")

tidy: Callable[[Exception], BaseException] = trimmed
"""Takes our frames out of an error's traceback; the converter installs one that also knows generated code."""


def located(function: Callable[P, R]) -> Callable[P, R]:
    """Errors that leave ``function`` show the user's frames; ours without a place get that of the code that calls."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True  # pytest and IPython leave the frame out
        try:
            return function(*args, **kwargs)
        except Exception as error:
            failure = error.locate(source_places.location_provider()) if is_a(error, Dy2StaticError) else error
        try:
            raise tidy(failure)
        finally:
            del failure

    return call


__all__ = ["located"]
