"""Process-wide switches: whether converted functions run as Programs at all, and which executor is the default."""

from __future__ import annotations

from runtime.calling.backends import BACKEND_VARIABLE, choose_backend

_enabled = True


def enable_to_static(flag: bool) -> None:
    """Switch conversion on or off, at call time: with False every converted function runs its original, eagerly.

    >>> enable_to_static(False); is_enabled()
    False
    >>> enable_to_static(True); is_enabled()
    True

    Errors raised: TypeError if ``flag`` is no bool.
    """
    global _enabled
    if not isinstance(flag, bool):
        raise TypeError(f"enable_to_static() takes True or False, not {flag!r}")
    _enabled = flag


def is_enabled() -> bool:
    """Whether converted functions run as Programs."""
    return _enabled


__all__ = ["BACKEND_VARIABLE", "choose_backend", "enable_to_static", "is_enabled"]
