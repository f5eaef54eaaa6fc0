"""Detached tensors to which values are written that need gradients.

``c = b.detach()`` shares memory with ``b``; what is written to ``c`` while gradients are recorded is in ``c``'s history
alone. A storage has one value, with one history: so a trace that meets such a write is begun again, and gives the
tensors that are detached there a storage of their own, which always is ``b``'s memory.

Where both leave the function they are one memory again: all of ``b`` is taken of ``c``, detached. Where that cannot be,
the function is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.ir import Type, Variable
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.memory import aliases
from runtime.tracer.memory.conditions import ALWAYS
from runtime.tracer.memory.storage_table import compose

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import Storage, TensorInfo
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


def of_detached(session: Session, info: TensorInfo, var: Variable, type: Type) -> tuple[Variable, Storage | None]:
    """What a tensor without a history holds, ``var``, for a caller: taken of memory that was detached of all of its own
    and has one, if there is any, with that memory. A write brought both up to date by copies."""
    for reference in () if info.requires_grad else info.storage.dependents:
        alias = reference()
        own = None if alias is None else alias.dependent()
        if (
            alias is not None and own is not None and alias.when.always and len(alias.steps) == 1
            and alias.steps[0].detaches and own.value is not own.first and not own.outdated
            and session.visible(own.value) and aliases.has_history(session, own)
        ):
            return session.replay(own.value, compose(alias.steps, info.steps), type), own
    return var, None


def require_one_memory(session: Session, leaving: Sequence[tuple[TensorInfo, Storage | None]]) -> None:
    """Refuse tensors that leave as memories of their own, and are one memory in eager.

    ``leaving``: with the memory that each was taken of in place of its own, if it was.

    Raises:
        TraceError: D2S222.
    """
    known = session.call.known.detached
    if not known:
        return
    taken = {(info.storage, of) for info, of in leaving}
    bases: dict[Storage, Storage] = {}
    for info, _ in leaving:
        own = info.storage
        if not aliases.has_history(session, own):
            continue
        for root in aliases.few_roots(info, ())[0][1:]:
            if not any(step.detaches and step.location in known for step in root.steps):
                continue
            base = root.storage
            is_callers = base.origin is not None and base.value is not base.origin
            apart = any(storage is base and of is not own for storage, of in taken)
            if is_callers or apart or bases.setdefault(base, own) is not own:
                what = "an argument that it is a part of is written, too" if is_callers else (
                    "other tensors of its memory leave, too")
                raise session.error(
                    f"a detached tensor leaves the function, with a value written to it that needs a gradient; {what}",
                    hint="Return a .clone() of it.", code="D2S222",
                    location=next(step.location for step in root.steps if step.detaches))


__all__ = ["of_detached", "require_one_memory", "require_own_history", "split"]
