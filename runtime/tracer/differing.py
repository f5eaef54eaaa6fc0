"""Lists and dicts whose content differs in structure between paths, after a change on one of them.

    d = {"p": x}
    if x.sum() > 0:        # the join cannot give d both {"p"} and {"p", "q"}
        d["q"] = y

Where one variable is all that refers to the container, nobody can tell it from a new one: the variable gets one of
several containers, a ``Choice``, as if each path had assigned its own.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from runtime.ir import Location
from runtime.tracer.branches import Path
from runtime.tracer.journal import Place
from runtime.tracer.notes import others, own_references
from runtime.tracer.structure import Choice, Options, Structure

if TYPE_CHECKING:
    from runtime.tracer.session import Session


_KINDS = (list, dict, OrderedDict)
_MOST = 16
"""How many different containers a variable may be."""


class Holder:
    """A variable that is all that refers to some containers, and what each path leaves in it."""

    def __init__(self, cell: CellType) -> None:
        self.place = Place("attribute", cell, "cell_contents")
        self.owners: list[Any] = []
        self.copies: set[int] = set()
        """By identity, what the paths' values hold in place of them."""

    def value(self, path: Path) -> Any:
        """The variable's value with containers of the path's own; called inside the path."""
        value = self.place.get()
        if isinstance(value, Choice):
            return Choice(value.selector, tuple(map(self._copied, value.options)))
        return self._copied(value)

    def _copied(self, value: Any) -> Any:
        if not any(value is owner for owner in self.owners):
            return value
        made = copy.copy(value)
        self.copies.add(id(made))
        return made


def holder(
    session: Session, place: Place, runs: Sequence[Callable[..., Any]], paths: Sequence[Path], known: dict[int, Holder]
) -> Holder | None:
    """The one variable of the functions ``runs`` that refers to the container of a place, if nothing else does.

    ``known``: those of a join, by the identity of their cells.
    """
    owner = place.owner
    if not _can_differ(session, owner) or others(owner) - _own(session, id(owner), paths) > 1:
        return None
    for cell in _cells(runs):
        value = cell.cell_contents
        held = isinstance(value, Choice) and any(option is owner for option in value.options)
        if value is owner or (held and others(value) - _own(session, id(value), paths) <= 1):
            found = known.setdefault(id(cell), Holder(cell))
            found.owners.append(owner)
            return found
    return None


def option_of(
    session: Session, of: Choice | None, place: Place, runs: Sequence[Callable[..., Any]], paths: Sequence[Path]
) -> int | None:
    """The path of a switch over a choice's options that has the container of a place to itself, if nothing else
    refers to it."""
    owner = place.owner
    if of is None or not _can_differ(session, owner):
        return None
    held = sum(cell.cell_contents is owner for cell in _cells(runs))
    found = [index for index in range(len(of.options)) if of.options[index] is owner]
    alone = len(found) == 1 and others(owner) - _own(session, id(owner), paths) <= 1 + held
    return found[0] if alone else None


def require_few(session: Session, joined: Structure, location: Location | None) -> None:
    """Refuse a variable that may be too many different containers: each key set on some paths doubles their number.

    Raises:
        TraceError: There are more than 16.
    """
    if isinstance(joined, Options) and len(joined.options) > _MOST:
        raise session.error(
            f"a container is changed in a branch, and may by now hold {len(joined.options)} different sets of items",
            hint="Give every path the same keys and kinds of items.",
            code="D2S254",
            location=location,
        )


def _can_differ(session: Session, owner: Any) -> bool:
    """Whether a container is of a kind that can be copied, and known to be no other one."""
    return type(owner) in _KINDS and id(owner) not in session.twins and id(owner) not in session.shared_containers


def _own(session: Session, key: int, paths: Sequence[Path]) -> int:
    """How many references to an object, by its identity, are the tracer's own."""
    return own_references(session, (key,), *(path.places for path in paths))[key]


def _cells(runs: Sequence[Callable[..., Any]]) -> Iterator[CellType]:
    """The variables that functions, and functions in them, share with those around them, as far as they are bound."""
    todo: list[Any] = list(runs)
    seen: set[int] = set()
    while todo:
        for cell in getattr(todo.pop(), "__closure__", None) or ():
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            if isinstance(value, FunctionType):
                todo.append(value)
            del value
            yield cell
