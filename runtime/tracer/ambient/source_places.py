"""Where in the user's source the trace stands, and where an exception was raised.

The converter, which alone can map generated code back, assigns both functions when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime import torch_internals
from runtime.ir import Location

location_provider: Callable[[], Location | None] = torch_internals.plain_user_location
"""Says where the trace stands."""

error_place: Callable[[BaseException], Location | None] = lambda error: None  # noqa: E731  # replaced as a whole
"""Says where an exception was raised, if the converter is there to tell."""
