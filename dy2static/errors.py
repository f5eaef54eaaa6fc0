"""The converter's errors, and the one way to fail: `fail(node, message)` shows the user's file, line and caret.

The classes live in `runtime.errors`, so that everything the project raises has one base.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn

import gast

from runtime.errors import (
    ConversionError,
    Dy2StaticError,
    InternalError,
    ProgramError,
    SignatureError,
    StorageError,
    TraceError,
)

if TYPE_CHECKING:
    from dy2static.source import FunctionSource

__all__ = [
    "ConversionError", "Dy2StaticError", "InternalError", "ProgramError", "SignatureError", "SourceUnavailable",
    "StorageError", "TraceError", "converting", "fail",
]  # fmt: skip

_current: ContextVar[FunctionSource | None] = ContextVar("dy2static_source", default=None)


class SourceUnavailable(ConversionError):
    """A function has no source that could be converted. Example: one made by ``exec``. Fix: put it in a file."""

    code = "D2S110"


@contextlib.contextmanager
def converting(source: FunctionSource) -> Iterator[None]:
    """While the block runs, `fail` finds the user's text in ``source``."""
    token = _current.set(source)
    try:
        yield
    finally:
        _current.reset(token)


def fail(node: gast.AST | None, message: str, *, hint: str = "", code: str = "") -> NoReturn:
    """Raise ConversionError at ``node``'s place in the function that is being converted (see `converting`)."""
    source = _current.get()
    location = source.location(node) if source is not None else None
    raise ConversionError(message, hint=hint, location=location, code=code)
