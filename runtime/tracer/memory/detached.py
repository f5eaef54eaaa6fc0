"""Detached tensors to which values are written that need gradients.

``c = b.detach()`` shares memory with ``b``; what is written to ``c`` while gradients are recorded is in ``c``'s history
alone. A storage has one value, with one history: so a trace that meets such a write is begun again, and gives the
tensors that are detached there a storage of their own, which always is ``b``'s memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.ir import Variable
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.memory import aliases
from runtime.tracer.memory.conditions import ALWAYS

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import TensorInfo
    from runtime.tracer.recording.session import Session


def split(session: Session, made: TensorInfo, value: Variable) -> None:
    """Give a tensor that was just detached a storage of its own, if it is known to need one."""
    last = made.steps[-1]
    if last.detaches and last.location in session.call.known.detached:
        storage = session.storages.new(value)
        aliases.add(storage, made.storage, made.steps, ALWAYS)
        made.storage, made.steps, made.fixed = storage, (), ()


def require_own_history(session: Session, written: TensorInfo) -> None:
    """Begin again if a tensor to which a value is written that needs gradients has its memory's history.

    Raises:
        Restart: It was detached; next time it gets a history.
        TraceError: The paths or iterations that join here left it none.
    """
    known = session.call.known.detached
    roots, _ = aliases.few_roots(written, ())
    new = frozenset(step.location for root in roots for step in root.steps if step.detaches) - known
    if new:
        raise session.restart(Findings(detached=new))
    if written.detached:
        raise session.error(
            "an in-place write that needs gradients to a detached tensor that comes out of a branch or a loop",
            hint="Write out of place (x = x + y instead of x += y), or use .detach().clone().",
            code="D2S222",
        )


__all__ = ["require_own_history", "split"]
