"""Modules that are imported for the first time in a trace: their code runs as in eager, on real tensors, and once.

    def f(x):
        import constants              # SCALE = torch.tensor(2.0)
        return x * constants.SCALE    # a tensor that outlives the trace
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from dy2static.operators.calls.caches import outside
from dy2static.operators.shared.staging import Session, active

_bootstrap: Any = importlib.import_module("importlib._bootstrap")
"""Python's own machinery: every import of a file that is not in ``sys.modules`` comes to its ``_load_unlocked``."""


@contextlib.contextmanager
def imported_outside(session: Session) -> Iterator[None]:
    """For the length of a trace, in the thread that traces, the code of modules is no part of it."""
    before = _bootstrap._load_unlocked

    def load(spec: Any) -> Any:
        if active() is not session:
            return before(spec)
        with outside(session):
            return before(spec)

    _bootstrap._load_unlocked = load
    try:
        yield
    finally:
        _bootstrap._load_unlocked = before
