"""Writes to memory of which it is not known what else it is: refused, for they have no static meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.ir import Location
from runtime.tracer.ambient.calls import Known

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import Storage
    from runtime.tracer.recording.session import Session


def require_certain(session: Session, storage: Storage) -> None:
    """Refuse a write to memory that may or may not be shared with what is still in use.

    Raises:
        TraceError: It may be.
        Restart: Both belong to arguments, whose sharing another trace can take into account.
    """
    if storage.lost is not None:
        raise storage.lost.error(session)
    for uncertainty in storage.unknown_aliases:
        other = uncertainty.other()
        if other is None:
            continue
        if session.inputs.is_input(storage) and session.inputs.is_input(other):
            raise session.restart(Known(shared=frozenset((storage.label, other.label))))
        raise _may_share(session, uncertainty.reason, uncertainty.location)
    for alias_set, location in storage.alias_sets:
        if alias_set.lose(session, storage):
            raise _may_share(session, "it is an item of a list that grows", location)


def _may_share(session: Session, reason: str, location: Location | None) -> Exception:
    where = f" (at {location})" if location else ""
    return session.error(
        f"an in-place write to a tensor that may share its memory with another: {reason}{where}",
        hint="Write out of place (x = x + y instead of x += y), or .clone() the tensor before it is shared.",
        code="D2S222",
    )
