"""Functions and classes that converted code makes: new objects, whoever else may refer to them by then."""

from __future__ import annotations

from typing import TypeVar

from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import active

Made = TypeVar("Made")


def defined(made: Made) -> Made:
    """Call with what a ``def``, ``lambda`` or ``class`` has just made; gives it back.

    >>> defined(len) is len
    True
    """
    session = active()
    if session is not None:
        memo(session).created[id(made)] = made
    return made


__all__ = ["defined"]
