"""``locals()``: the variables that a function has now, as a new dict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.shared.staging import Choice, Undefined, active
from runtime.kinds import is_a


def variables(reads: Callable[[], Any], names: str) -> Any:
    """The variables called ``names`` that ``reads``, which is never called, has in its closure, if they are bound.

    Raises:
        TraceError: D2S214, one is bound on some paths only.
    """
    cells = dict(zip(reads.__code__.co_freevars, reads.__closure__ or ()))
    session = active()
    pairs = []
    for name in names.split():
        try:
            value = cells[name].cell_contents
        except (KeyError, ValueError):  # a global name, or one that is not bound
            continue
        if is_a(value, Undefined):
            continue
        options = value.options if is_a(value, Choice) else ()
        if session is not None and any(is_a(one, Undefined) for one in options):
            raise session.error(
                f"locals() is called where only the run knows whether '{name}' is bound", code="D2S214",
                hint=f"Bind '{name}' before the branch or loop that binds it.")
        pairs.append((name, value))
    return dict(pairs) if session is None else call(dict, pairs)


__all__ = ["variables"]
