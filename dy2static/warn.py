"""Warnings at the line of the user's that made the call, however deep inside they arise."""

from __future__ import annotations

import warnings

from dy2static.origin import user_location


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the innermost place of the user's code."""
    place = user_location()
    if place is None:
        warnings.warn(message, category, stacklevel=3)
    else:
        warnings.warn_explicit(message, category, place.file, place.line)


__all__ = ["warn"]
