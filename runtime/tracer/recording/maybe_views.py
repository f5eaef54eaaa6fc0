"""``contiguous``, ``reshape`` and their like where a size is not known while tracing: whether they give memory of their
own may depend on it.

    x.t().contiguous().add_(1)      writes a copy, but for one row: then it writes ``x``

Torch's shape rule takes such a size for one that is not 1. As long as neither is written, nobody can tell. Once one is,
the trace begins again, and takes it for a fact, as ``squeezes`` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.ops.corrections import MAYBE_VIEWS
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.recording import squeezes
from runtime.tracer.recording.session import Session

_NAMES = frozenset(name.replace("aten.", "aten::") for name in MAYBE_VIEWS)
_FOUND = "written"


def settle(session: Session, func: Any, args: Any) -> None:
    """If it matters, let it be a fact that no size that is not known is 1."""
    if _FOUND not in session.call.known.sized or not _asks(session, func, args):
        return
    for size in session.fake(args[0]).shape:
        if is_a(size, torch.SymInt) and not squeezes.is_known(session, size):
            squeezes.not_one(session, size)


def note(session: Session, func: Any, args: Any, made: Iterable[Storage]) -> None:
    """Note memory that may be that of the argument, for some sizes."""
    if not _asks(session, func, args) or _FOUND in session.call.known.sized:
        return
    if any(is_a(size, torch.SymInt) and not squeezes.is_known(session, size)
           for size in session.fake(args[0]).shape):  # fmt: skip
        for storage in (*made, session.info(args[0]).storage):
            storage.shared_by_size = True


def require_settled(session: Session, written: Iterable[Storage]) -> None:
    """Begin again if memory is written that is another's for some sizes.

    Errors raised: Restart.
    """
    if _FOUND not in session.call.known.sized and any(storage.shared_by_size for storage in written):
        raise session.restart(Findings(sized=frozenset((_FOUND,))))


def _asks(session: Session, func: Any, args: Any) -> bool:
    return func._schema.name in _NAMES and session.replaying is None and is_a(args[0], torch.Tensor)


__all__ = ["note", "require_settled", "settle"]
