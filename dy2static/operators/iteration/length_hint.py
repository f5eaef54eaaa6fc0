"""How many items there may be: what Python asks a user's object before it makes a list of its items.

``list``, ``tuple`` and ``sorted``, ``list.extend``, ``str.join``, a star in a list, tuple or call ask so, after
``iter`` and before the first item; a set, a dict or a loop does not. The answer is a hint, but the user's code runs.
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.constructs import user_methods
from dy2static.operators.shared.staging import Session, Staged, python_method
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import acts_for_user


def ask(session: Session, value: Any) -> None:
    """Ask for the ``__len__`` of an object, or its ``__length_hint__``, where a user wrote them.

    Raises:
        TypeError, ValueError: the answer is none, as Python says it.
    """
    if _knows(value):
        return
    if hasattr(type(value), "__len__"):
        if not user_methods.is_users(python_method(value, "__len__")):
            return
        try:
            call(len, value)
        except TypeError:
            pass
        else:
            return
    method = python_method(value, "__length_hint__")
    if not user_methods.is_users(method):
        return
    try:
        found = call(method, value)
    except TypeError:
        return
    _require_number(found)


def _knows(value: Any) -> bool:
    return type(value) in (list, tuple, dict, set, frozenset, str) or is_a(value, Staged)


@acts_for_user
def _require_number(found: Any) -> None:
    if found is NotImplemented or is_a(found, Staged):
        return
    if not is_a(found, int):
        raise TypeError(f"__length_hint__ must be an integer, not {type(found).__name__}")
    if found < 0:
        raise ValueError("__length_hint__() should return >= 0")


__all__ = ["ask"]
