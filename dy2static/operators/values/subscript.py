"""Subscripts: plain outside a trace; in one, staged indices select while the Program runs and stores are journaled.

    y = a[k]; a[i:j] = y; del a[k]   ->   y = item(a, k); set_item(a, slice(i, j), y); del_item(a, k)
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.shared.staging import active
from dy2static.operators.values.traced_subscript import delete, read, write


def item(obj: Any, key: Any) -> Any:
    """``obj[key]``."""
    session = active()
    if session is None:
        return obj[key]
    return read(session, obj, key)


def set_item(obj: Any, key: Any, value: Any) -> None:
    """``obj[key] = value``."""
    session = active()
    if session is None:
        obj[key] = value
        return
    write(session, obj, key, value)


def del_item(obj: Any, key: Any) -> None:
    """``del obj[key]``."""
    session = active()
    if session is not None:
        delete(session, obj, key)
        return
    del obj[key]
