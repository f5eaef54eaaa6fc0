"""Stores to names declared ``nonlocal``: noted first, so that a staged branch which calls the function can be joined.

    nonlocal n; n = 1   ->   note_nonlocal(lambda: n); n = 1
    nonlocal n; del n   ->   note_nonlocal(lambda: n, True); del n
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static.operators.provenance.provenance import note_binding
from dy2static.operators.shared.staging import active


def note_nonlocal(read: Callable[[], Any], deleted: bool = False) -> None:
    """Call before a name of an outer function is bound or ``deleted``; ``read`` is a lambda that reads just this name.

    >>> n = 1
    >>> (lambda n: note_nonlocal(lambda: n))(2)
    """
    session = active()
    if session is None:
        return
    (cell,) = read.__closure__ or ()
    if deleted:
        note_binding(session, read.__code__.co_freevars[0], cell)
    session.journal.note_attribute(cell, "cell_contents")
