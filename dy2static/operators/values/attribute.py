"""Attributes: plain outside a trace; in one, reads are guarded and stores journaled.

    y = a.b; a.b = y; del a.b   ->   y = attr(a, "b"); set_attr(a, "b", y); del_attr(a, "b")
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.shared.staging import active
from dy2static.operators.values.traced_attribute import delete, read, write


def attr(obj: Any, name: str) -> Any:
    """``obj.name``."""
    session = active()
    if session is None:
        return getattr(obj, name)
    return read(session, obj, name)


def set_attr(obj: Any, name: str, value: Any) -> None:
    """``obj.name = value``."""
    session = active()
    if session is None:
        setattr(obj, name, value)
        return
    write(session, obj, name, value)


def del_attr(obj: Any, name: str) -> None:
    """``del obj.name``."""
    session = active()
    if session is None:
        delattr(obj, name)
        return
    delete(session, obj, name)
