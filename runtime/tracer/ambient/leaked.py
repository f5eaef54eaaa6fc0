"""A value of a trace that is used after the trace: only a running Program has it."""

from __future__ import annotations

from runtime.errors import TraceError
from runtime.tracer.ambient import source_places


def leaked() -> TraceError:
    """The error, at the place of the use."""
    return TraceError(
        "a value of a finished trace was used outside the converted function",
        hint="Do not keep tensors or numbers of a converted function in globals, caches or default arguments.",
        code="D2S211",
        location=source_places.location_provider(),
    )


__all__ = ["leaked"]
