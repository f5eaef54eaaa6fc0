"""Writes to memory of which it is not known what else it is: refused, for they have no static meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from runtime.ir import Location
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.memory.storage_table import note_unknown_alias

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import Storage, UnknownAlias
    from runtime.tracer.recording.session import Session

N = TypeVar("N")


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
            raise session.restart(Findings(shared=frozenset((storage.label, other.label))))
        raise _may_share(session, uncertainty.reason, uncertainty.location)
    for alias_set, location in storage.alias_sets:
        if alias_set.lose(session, storage):
            raise _may_share(session, "it is an item of a list that grows", location)


def note_maybe_copy(source: Storage, result: Storage, reason: str, location: Location | None) -> None:
    """Note that ``result`` may be a copy of ``source``, or the same memory: then it is whatever that may be, also once
    nobody has ``source`` any more."""
    found, todo = {source: None}, [source]
    while todo:
        one = todo.pop()
        near = [alias.base for alias in one.aliases]
        near += [dependent for ref in one.dependents if (alias := ref()) and (dependent := alias.dependent())]
        near += [other for unknown in one.unknown_aliases if (other := unknown.other())]
        new = [other for other in near if other not in found and other is not result]
        found.update(dict.fromkeys(new))
        todo += new
    for one in found:
        note_unknown_alias(one, result, reason, location)


def between(
    members: Sequence[tuple[N, Storage]], is_outside: Callable[[Storage], bool]
) -> Iterator[tuple[N, N | Storage, UnknownAlias]]:
    """Of the memory that leaves a branch or an iteration: what may be one with another of it, or with what exists
    outside, in a way that nothing says. ``members``: by number, the memory inside.

    A write to one reaches what it is a view of, and all views of that: what is unknown of those is unknown of it.
    """
    if not any(storage.table is not None and storage.table.some_unknown for _, storage in members):
        return
    reached = [(number, _reach(storage, is_outside)) for number, storage in members]
    for number, mine in reached:
        for uncertainty in [one for storage in mine if not is_outside(storage) for one in storage.unknown_aliases]:
            other = uncertainty.other()
            if other is None:
                continue
            above = _above(other, is_outside)
            for one, theirs in reached:
                if other in theirs:
                    yield number, one, uncertainty
            for storage in above:
                if is_outside(storage):
                    yield number, storage, uncertainty


def _above(storage: Storage, is_outside: Callable[[Storage], bool]) -> dict[Storage, None]:
    """Some memory and what it may be a view of, up to what exists outside."""
    found, todo = {storage: None}, [storage]
    while todo:
        one = todo.pop()
        for alias in () if is_outside(one) else one.aliases:
            if alias.base not in found:
                found[alias.base] = None
                todo.append(alias.base)
    return found


def _reach(storage: Storage, is_outside: Callable[[Storage], bool]) -> dict[Storage, None]:
    """What a write to some memory may reach inside, itself included."""
    found = _above(storage, is_outside)
    todo = list(found)
    while todo:
        one = todo.pop()
        for ref in () if is_outside(one) else one.dependents:
            alias = ref()
            dependent = alias.dependent() if alias is not None else None
            if dependent is not None and dependent not in found:
                found[dependent] = None
                todo.append(dependent)
    return found


def _may_share(session: Session, reason: str, location: Location | None) -> Exception:
    where = f" (at {location})" if location else ""
    return session.error(
        f"an in-place write to a tensor that may share its memory with another: {reason}{where}",
        hint="Write out of place (x = x + y instead of x += y), or .clone() the tensor before it is shared.",
        code="D2S222",
    )
