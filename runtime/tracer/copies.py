"""Lists and dicts that a join had to build anew: the user's program may know the original by another name.

Where it does (something besides the joined variable still refers to it), changing either would silently miss the other,
so both are *shared* from then on, and changing one is a located error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runtime.ir import Location
from runtime.tracer import structure
from runtime.tracer.structure import Choice

if TYPE_CHECKING:
    from runtime.tracer.session import Session

Pair = list[Any]
"""An original, what was built in its place, and how many of the pairs' own containers hold the original."""


def pairs(source: Any, joined: Any, held: int = 0) -> Iterator[Pair]:
    """The mutable containers in a value that leaves a path beside those that stand for them after the join."""
    if source is joined or isinstance(source, Choice):
        return
    if isinstance(joined, Choice):
        for option in joined.options:
            if type(option) is type(source):
                yield from pairs(source, option, held)
        return
    if type(source) is not type(joined):
        return
    if type(source) in (list, dict):
        yield [source, joined, held]
        held = 1  # tuples and objects are held by nothing here: what they hold is not held by a pair
    if type(source) in (list, tuple):
        if len(source) == len(joined):
            for inner, other in zip(source, joined):
                yield from pairs(inner, other, held)
        else:
            for inner in source:
                if type(inner) in (list, dict):
                    yield [inner, joined, held]
        return
    fields, others = structure.field_items(source), structure.field_items(joined)
    if fields is not None and others is not None and fields[0] == others[0]:
        for inner, other in zip(fields[1], others[1]):
            yield from pairs(inner, other, held)


def _references(pair: Pair) -> int:
    return sys.getrefcount(pair[0])


_ALONE = _references([[], None, 0])
"""How many references Python counts when nothing but the pair holds an object."""


def share(session: Session, found: list[Pair], location: Location | None) -> None:
    """Mark originals that something else still refers to, and their copies; ``found`` is their last holder here."""
    repeated: dict[int, int] = {}
    copies: dict[int, set[int]] = {}
    for pair in found:
        repeated[id(pair[0])] = repeated.get(id(pair[0]), 0) + 1
        copies.setdefault(id(pair[0]), set()).add(id(pair[1]))
    noted = session.journal.holders()
    for pair in found:
        split = len(copies[id(pair[0])]) > 1  # two variables held the original, and now each holds a copy of its own
        known = _ALONE + pair[2] + repeated[id(pair[0])] - 1 + noted[id(pair[0])]
        if split or _references(pair) > known:
            for container in pair[:2]:
                session.shared_containers[id(container)] = (container, location)


def require_own(session: Session, container: Any) -> None:
    """Refuse to change a container that may be the same object as another.

    Raises:
        TraceError: A join made it a copy while the original is still known by another name.
    """
    found = session.shared_containers.get(id(container))
    if found is None:
        return
    where = f" (at {found[1]})" if found[1] is not None else ""
    raise session.error(
        f"a {type(container).__name__} is changed that may be the same object as another one: a variable was given "
        f"one of several objects{where}",
        hint="Make a new one instead (xs = xs + [x]), or copy it first (list(xs), dict(d)) on every path.",
        code="D2S226",
    )
