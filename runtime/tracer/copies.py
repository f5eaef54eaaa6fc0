"""Lists and dicts that a join had to build anew: the user's program may know the original by another name.

Where it does, the two are one object on that path: *twins*, brought up to date with each other when one is changed.
Where it is not known which is which, both are *shared* from then on, and changing one is a located error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.ir import Location
from runtime.tracer import objects, structure, twins
from runtime.tracer.late import Flags
from runtime.tracer.notes import others, own_references
from runtime.tracer.structure import Choice

if TYPE_CHECKING:
    from runtime.tracer.session import Session


@dataclass(eq=False, slots=True)
class Pair:
    """An original, and what was built in its place."""

    original: Any
    copy: Any
    exact: bool = True
    """Whether the copy stands for this very original wherever the path was taken that brings it out."""
    path: int = -1


def pairs(source: Any, joined: Any, exact: bool = True) -> Iterator[Pair]:
    """The mutable containers in a value that leaves a path beside those that stand for them after the join."""
    if source is joined:
        return
    if isinstance(source, Choice):
        options = joined.options if isinstance(joined, Choice) else (joined,)
        for option in source.options:
            if not any(option is other for other in options):
                for other in options:
                    if _may_carry(other, option):
                        yield from pairs(option, other, False)
        return
    if isinstance(joined, Choice):
        fitting = [option for option in joined.options if _may_carry(option, source)]
        if any(option is source for option in fitting):
            return
        for option in fitting:
            yield from pairs(source, option, exact and len(fitting) == 1)
        return
    if type(source) is not type(joined):
        return
    if type(source) in (list, dict):
        yield Pair(source, joined, exact)
    if type(source) in (list, tuple):
        if len(source) == len(joined) and structure.growing(joined) is None:
            for inner, other in zip(source, joined):
                yield from pairs(inner, other, exact)
        else:
            for inner in source:
                if type(inner) in (list, dict):
                    yield Pair(inner, joined, False)
        return
    fields, others = structure.field_items(source), structure.field_items(joined)
    if fields is not None and others is not None and fields[0] == others[0]:
        for inner, other in zip(fields[1], others[1]):
            yield from pairs(inner, other, exact)


def _may_carry(option: Any, source: Any) -> bool:
    """Whether one of several options can stand for a container: of dicts, one with the same keys."""
    if type(option) is not type(source):
        return False
    return not isinstance(source, dict) or list(option) == list(source)


def share(
    session: Session, found: list[Pair], location: Location | None, flags: twins.JoinFlags | None = None,
    old: frozenset[int] = frozenset(),
) -> None:  # fmt: skip
    """Link originals that something else still refers to with their copies; ``found`` is their last holder here.

    ``flags``: those of the join, without which what is still referred to is marked. ``old``: the identities of what
    existed before.
    """
    copies: dict[int, set[int]] = {}
    for pair in found:
        copies.setdefault(id(pair.original), set()).add(id(pair.copy))
    links = _Links(session, flags, old)
    known = _known(session, found)
    if flags is None:
        inherit_held(session, found, [])
    reached: set[int] = set()
    for pair in found:
        if id(pair.original) in session.twins and (behind := links.behind(pair)):
            reached.update((id(pair.original), *(id(other) for other, _ in behind)))
            del behind
    for pair in found:
        if id(pair.original) in session.shared_containers:  # what it may be, its copy may be
            session.shared_containers[id(pair.copy)] = (pair.copy, session.shared_containers[id(pair.original)][1])
        split = len(copies[id(pair.original)]) > 1  # two variables held the original, and now each holds its own copy
        if not (split or id(pair.original) in reached or id(pair.original) in known):
            continue
        if flags is not None and pair.exact and (id(pair.original) in old or id(pair.original) not in known):
            links.note(pair)
        else:
            for container in (pair.original, pair.copy):
                session.shared_containers[id(container)] = (container, location)
    links.add()


def _known(session: Session, found: list[Pair]) -> set[int]:
    """The originals, by identity, that more refers to than the pairs and other originals that nothing refers to."""
    first = {id(pair.original): pair for pair in found}
    own = own_references(session, first)
    counts: dict[int, int] = {}
    for key, pair in first.items():
        original = pair.original
        counts[key] = others(original) - own[key]
        del original
    for pair in found:
        counts[id(pair.original)] -= 1
    inner = {key: [id(item) for item in items(pair.original)] for key, pair in first.items()}
    for held in inner.values():
        for item in held:
            if item in counts:
                counts[item] -= 1
    known: set[int] = set()
    todo = [key for key, count in counts.items() if count > 0]
    while todo:
        key = todo.pop()
        known.add(key)
        for item in inner[key]:  # what holds it is referred to itself
            if item in counts and item not in known:
                todo.append(item)
    return known


def items(container: Any) -> Any:
    """What a list or dict holds."""
    return container.values() if isinstance(container, dict) else container


class _Links:
    """The twins that one join makes."""

    def __init__(self, session: Session, flags: twins.JoinFlags | None, old: frozenset[int]) -> None:
        self._session, self._flags, self._old = session, flags, old
        self._cases: dict[tuple[int, int], tuple[Any, Any, dict[int, list[Flags]]]] = {}
        self._members: dict[tuple[int, int], list[tuple[Any, Flags]]] = {}
        """What was built, on each path, for what a path made."""

    def behind(self, pair: Pair) -> list[list[Any]]:
        """What the original may be, as it was known at the end of its path."""
        if self._flags is None or id(pair.original) in self._old:
            return twins.reach(self._session, pair.original)
        with self._session.reopen(self._flags.paths[pair.path].scope):
            return twins.reach(self._session, pair.original, lambda other: id(other) in self._old)

    def note(self, pair: Pair) -> None:
        """The copy is the original where the pair's path was taken."""
        if id(pair.original) in self._old:
            self._case(pair.copy, pair.original, pair.path, ())
            return
        for other, cases in ((pair.original, [()]), *self.behind(pair)):
            for flags in cases:
                if id(other) in self._old:
                    self._case(pair.copy, other, pair.path, flags)
                    continue
                members = self._members.setdefault((pair.path, id(other)), [])
                for copy, mine in members:
                    self._case(pair.copy, copy, pair.path, (*mine, *flags))
                members.append((pair.copy, flags))

    def _case(self, copy: Any, other: Any, path: int, flags: Flags) -> None:
        if copy is other:
            return
        key = (id(other), id(copy)) if (id(other), id(copy)) in self._cases else (id(copy), id(other))
        cases = self._cases.setdefault(key, (copy, other, {}))[2].setdefault(path, [])
        if flags not in cases:
            cases.append(flags)

    def add(self) -> None:
        """Make them."""
        for copy, other, by_path in self._cases.values():
            assert self._flags is not None
            twins.add(self._session, copy, other, self._flags.flags(by_path))


def require_own(session: Session, container: Any, what: str = "changed") -> None:
    """Refuse to change a container, or to do ``what`` to it, that may be the same object as another.

    Raises:
        TraceError: A join made it a copy while the original is still known by another name.
    """
    if id(container) in session.held_in_lists:
        raise _held(session, container, what)
    found = session.shared_containers.get(id(container))
    if found is None:
        return
    where = f" (at {found[1]})" if found[1] is not None else ""
    if objects.is_record(container):
        raise session.error(
            f"a {type(container).__name__} of which a list that grows holds a copy{where} is changed, or compared with "
            "'is', and may be one of its items",
            hint="Give it all it holds before it is appended, and put a new one in its place "
            "(xs[i] = dataclasses.replace(xs[i], ...)).",
            code="D2S226",
        )
    raise session.error(
        f"a {type(container).__name__} is {what} that may be the same object as another one: a variable was given "
        f"one of several objects{where}",
        hint="Make a new one instead (xs = xs + [x]), or copy it first (list(xs), dict(d)) on every path.",
        code="D2S226",
    )


def _held(session: Session, container: Any, what: str) -> Exception:
    """The error for a container or record of which a list that grows holds a copy."""
    location = session.held_in_lists[id(container)]
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


def inherit_held(session: Session, found: list[Pair], by_path: list[dict[int, Location | None]]) -> None:
    """What a list that grows holds a copy of on a path, it may hold a copy of after the join; so with what is built.

    ``by_path``: what it held at the end of each.
    """
    for held in by_path:
        session.held_in_lists.update(held)
    for pair in found:
        held = by_path[pair.path] if pair.path >= 0 else session.held_in_lists
        if id(pair.original) in held:
            session.held_owners[id(pair.copy)] = pair.copy
            session.held_in_lists[id(pair.copy)] = held[id(pair.original)]


def require_unshared(session: Session, changed: set[int], location: Location | None) -> None:
    """Refuse a loop that changed what stands for a list or dict that something else refers to, too.

    Raises:
        TraceError: One of them, by identity, is shared.
    """
    for key in changed:
        if key in session.shared_containers:
            container = session.shared_containers[key][0]
            raise session.error(
                f"a {type(container).__name__} that another variable holds, too, is changed in a loop in which its own "
                "variable becomes another one",
                hint="Copy it before the loop (list(xs), dict(d)).",
                code="D2S226",
                location=location,
            )
