"""Which executor runs Programs: what the user says, else the environment, else ``"auto"`` where C can be compiled."""

from __future__ import annotations

import difflib
import os

from runtime.calling.executors import EXECUTORS
from runtime.kinds import is_a
from runtime.native import build

BACKEND_VARIABLE = "DY2STATIC_BACKEND"
AVAILABLE = tuple(EXECUTORS)
PLANNED = ("inductor",)


def choose_backend(name: str | None) -> str:
    """The backend to use: ``name``, else the environment variable ``DY2STATIC_BACKEND``, else ``"auto"``; without a C
    compiler the interpreter.

    >>> choose_backend("interpreter")
    'interpreter'

    Errors raised: TypeError if ``name`` is no string, ValueError for a backend that does not exist (yet).
    """
    source = "backend"
    if name is None:
        name = os.environ.get(BACKEND_VARIABLE) or ("interpreter" if build.compiler() is None else "auto")
        source = f"the environment variable {BACKEND_VARIABLE}"
    if not is_a(name, str):
        raise TypeError(f"backend must be a string or None, not {name!r}")
    if name in AVAILABLE:
        return name
    if name in PLANNED:
        raise ValueError(f"{source} is {name!r}, which is not available yet; use 'interpreter'")
    near = difflib.get_close_matches(name, AVAILABLE, n=1)
    advice = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(map(repr, AVAILABLE))}"
    raise ValueError(f"{source} is {name!r}, which is no backend; {advice}")


__all__ = ["BACKEND_VARIABLE", "choose_backend"]
