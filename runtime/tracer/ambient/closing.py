"""What ends a trace in which values of a call's arguments were to be open: inputs in place of constants."""

from __future__ import annotations

from runtime.errors import TraceError


class CannotBeOpen(TraceError):
    """A trace needs a value of the caller's that was to be open: it has to be made again, with the value fixed."""


__all__ = ["CannotBeOpen"]
