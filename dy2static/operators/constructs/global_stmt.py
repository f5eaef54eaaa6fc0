"""Stores to names declared ``global``, and deletions of them.

    global n; n = 1   ->   set_global("n", 1)
    global n; del n   ->   del_global("n")
"""

from __future__ import annotations

import sys
from typing import Any

from dy2static.operators.provenance.provenance import note_global_presence, note_global_write
from dy2static.operators.shared.load import MISSING, settle
from dy2static.operators.shared.staging import Choice, active
from runtime.kinds import is_a


def set_global(name: str, value: Any) -> None:
    """Bind a global name of the calling function's module."""
    namespace = sys._getframe(1).f_globals
    session = active()
    if session is not None:
        note_global_write(session, namespace, name)
    namespace[name] = value


def del_global(name: str) -> None:
    """Unbind a global name of the calling function's module. Errors raised: NameError if it is not bound."""
    namespace = sys._getframe(1).f_globals
    session = active()
    if session is not None:
        note_global_presence(session, namespace, name)
    message = f"name '{name}' is not defined"
    if name not in namespace:
        raise NameError(message, name=name)
    if session is not None:
        if is_a(namespace[name], Choice):  # on some paths it is not
            settle(session, namespace[name], MISSING, "NameError", message)
        note_global_write(session, namespace, name)
    del namespace[name]
