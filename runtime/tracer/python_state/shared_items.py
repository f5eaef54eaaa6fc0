"""Lists, dicts and instances of dataclasses of which a list that grows holds copies: they may not be changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.calls import Findings

if TYPE_CHECKING:
    from runtime.ir import Location
    from runtime.tracer.recording.session import Session


def require_own(session: Session, container: Any, what: str = "changed") -> None:
    """Refuse to change a container, or to do ``what`` to it, of which a list that grows holds a copy.

    Raises:
        TraceError: D2S226, a list that grows holds a copy of it.
    """
    if id(container) in session.containers.held_in_lists:
        if type(container) in (list, dict) or objects.is_record(container):
            session.hold_by_reference(type(container))
        if is_a(container, dict):
            begin_again_keyed(session, session.containers.dicts_in_lists)
        raise _held(session, container, what)


def _held(session: Session, container: Any, what: str) -> Exception:
    """The error for a container or record of which a list that grows holds a copy."""
    location = session.containers.held_in_lists[id(container)]
    where = f" (at {location})" if location is not None else ""
    if objects.is_record(container):
        return session.error(
            f"a {type(container).__name__} of which a list that grows holds a copy{where} is changed, or compared with "
            "'is', and may be one of its items",
            hint="Give it all it holds before it is appended, and put a new one in its place "
            "(xs[i] = dataclasses.replace(xs[i], ...)).",
            code="D2S226",
        )
    return session.error(
        f"a {type(container).__name__} is {what} of which a list whose length is only known while the Program runs "
        f"holds a copy{where}",
        hint="Change it before it is put into the list, or put another one in its place (rows[i] = rows[i] + [x]).",
        code="D2S226",
    )


def hold(session: Session, value: Any) -> None:
    """A list that grows holds a copy of a list, dict or record from now on."""
    session.containers.held_owners[id(value)] = value
    session.containers.held_in_lists[id(value)] = session.location()


def note_dict(session: Session, value: Any) -> None:
    """A list that grows is to hold something, or holds a copy of it: if it is a dict that the function makes, note
    where it makes it."""
    if is_a(value, dict) and (where := session.containers.made_at.get(id(value))) is not None:
        session.containers.dicts_in_lists.add(where)


def begin_again_keyed(session: Session, places: Iterable[Location]) -> None:
    """Dicts or sets that are made at some places get keys that are numbers of the run, or in numbers that only the run
    knows: they are made of lists (see ``ops.keyed``).

    Raises:
        Restart: So that they are; nothing is raised where they were.
    """
    new = frozenset(places) - session.call.known.keyed
    if new:
        raise session.restart(Findings(keyed=new))


def hold_holders(session: Session, value: Any) -> None:
    """A list that grows would hold a list, dict or object by reference, which has no place there yet: where it is in a
    record of which such a list holds a copy, the record is held by reference, too.

    Raises:
        Restart: So that it is.
    """
    holders = {type(one) for one in session.objects.created.values()
               if objects.is_record(one) and any(part is value for part in objects.contents(one).values())}
    session.hold_by_reference(*holders)


def note_same(session: Session, values: Iterable[Any], made: Any) -> None:
    """``made`` stands for any of some containers from now on."""
    if any(id(value) in session.containers.held_in_lists for value in values):
        hold(session, made)
