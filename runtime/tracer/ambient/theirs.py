"""What the tracer does because the user's code says so: what it raises is the user's (see ``faults``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def theirs(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``."""
    return function(*args, **kwargs)
