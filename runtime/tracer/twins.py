"""Lists and dicts that are one object on some paths only, and what a change of either does to the other.

After ``if c: b = a`` ``else: b = [1]`` the join gives ``b`` a list of its own and a ``Twin`` to ``a``, with a flag that
says at run time whether they are one. Nothing is recorded for it until one of them is changed; then the other is
brought up to date under that flag, as a branch of the user's own would do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.ir import Operator
from runtime.tracer import late
from runtime.tracer.journal import Place
from runtime.tracer.late import BOOL, Flags, JoinOutput, PathEnd
from runtime.tracer.notes import others, own_references

if TYPE_CHECKING:
    from runtime.tracer.session import Scope, Session

_MOST = 64
"""How many ways from one container to others are followed."""


@dataclass(eq=False)
class Twin:
    """Two containers that are one where ``flags`` hold."""

    one: Any
    other: Any
    flags: Flags


class JoinFlags:
    """The flags of one join, by the paths on which they hold; it holds nothing that the paths made."""

    def __init__(self, op: Operator, scope: Scope, paths: list[PathEnd]) -> None:
        self._op, self._scope, self.paths = op, scope, paths
        self._known: dict[frozenset[int], Flags] = {}

    def flags(self, cases: dict[int, list[Flags]]) -> Flags:
        """What holds where the path taken has cases of its own that do."""
        plain = all(() in mine for mine in cases.values())
        key = frozenset(cases)
        if not plain or key not in self._known:
            paths = [
                (path, (True if plain else list(cases[number])) if number in cases else False)
                for number, path in enumerate(self.paths)
            ]
            made = (JoinOutput(self._op, self._scope, BOOL, paths),)
            if not plain:
                return made
            self._known[key] = made
        return self._known[key]


def add(session: Session, one: Any, other: Any, flags: Flags) -> None:
    """Note that two containers are one where the flags hold."""
    twin = Twin(one, other, flags)
    for container in (one, other):
        session.twins.setdefault(id(container), []).append(twin)


def reach(session: Session, container: Any, ends: Callable[[Any], bool] = lambda other: False) -> list[list[Any]]:
    """The containers that one may be, each with the cases in which it is; what ``ends`` is not looked behind.

    Raises:
        TraceError: There are too many ways.
    """
    found: dict[int, list[Any]] = {}
    for number, (other, flags) in enumerate(_ways(session, container, (), {id(container)}, ends)):
        if number == _MOST:
            raise session.error(
                f"a {type(container).__name__} is changed that may be the same object as many others",
                hint="Make a new one instead (xs = xs + [x]), or copy it first (list(xs), dict(d)) on every path.",
                code="D2S226",
            )
        found.setdefault(id(other), [other, []])[1].append(flags)
    return list(found.values())


def _ways(
    session: Session, container: Any, flags: Flags, seen: set[int], ends: Callable[[Any], bool]
) -> Iterator[tuple[Any, Flags]]:
    for twin in session.twins.get(id(container), ()):
        other = twin.other if twin.one is container else twin.one
        # One that is not visible belongs to a path, or to an attempt at a loop's body, that is over.
        if id(other) in seen or not all(session.visible(flag.var) for flag in twin.flags):
            continue
        all_flags = (*flags, *twin.flags)
        yield other, all_flags
        if not ends(other):
            yield from _ways(session, other, all_flags, seen | {id(other)}, ends)


def same(session: Session, a: Any, b: Any) -> Any:
    """Whether two different containers are one object in eager mode: a staged bool, or False."""
    for other, cases in reach(session, a):
        if other is b:
            return late.staged_flag(session, cases)
    return False


def propagate(session: Session, changed: Any) -> None:
    """Bring containers up to date that may be the same as what was just changed."""
    if id(changed) not in session.twins:
        return
    for entry in reach(session, changed):
        if _observed(session, entry):
            _update(session, changed, *entry)


def _observed(session: Session, entry: list[Any]) -> bool:
    """Whether anything but the tracer refers to a container."""
    container = entry[0]
    own = own_references(session, (id(container),))[id(container)]
    return others(container) - 1 - own > 0  # one is the entry's


def _update(session: Session, changed: Any, other: Any, cases: list[Flags]) -> None:
    """Where a case holds, ``other`` holds what ``changed`` holds."""
    from runtime.tracer.cond import NoNames, cond

    place = Place("content", other)
    mine = list(other.values()) if isinstance(other, dict) else list(other)

    def own(item: Any) -> Any:
        """The container that ``other`` holds already and that is the item in the very same cases."""
        for twin in session.twins.get(id(item), ()):
            partner = twin.other if twin.one is item else twin.one
            if [twin.flags] == cases and any(held is partner for held in mine):
                return partner
        return item

    content = Place("content", changed).get()
    if isinstance(content, dict):
        content = {key: own(item) for key, item in content.items()}
    else:
        content = [own(item) for item in content]
    flag = late.staged_flag(session, cases)
    if flag is True:
        session.journal.write(place, content)
    elif flag is not False:
        cond(session, flag, lambda: session.journal.write(place, content), lambda: None, NoNames())
