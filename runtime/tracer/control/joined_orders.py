"""The order of an object's attributes, where paths and iterations have changed it.

    a.u, a.v = x, y
    if x.sum() > 0:
        del a.u
        a.u = x * 2           vars(a): v, u on this path

An order that all paths agree on is the order after them: attributes that only some of them set have a place in it.
Where they do not agree, the journal knows that the object is disordered, and whoever asks for its order is refused.
"""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from runtime.ir import Location, Operator, Variable
from runtime.kinds import is_a
from runtime.tracer.control.branches import Path
from runtime.tracer.control.parts import Body, LoopPart, Pairs
from runtime.tracer.python_state.journal import MISSING, Frame, Place, ordered_space, put_in_order
from runtime.tracer.recording.session import Session
from runtime.tracer.values import structure


def _one_order(orders: Iterable[Sequence[str]]) -> tuple[str, ...] | None:
    """An order of all these names in which each sequence keeps its own; None if there is none."""
    graph: dict[str, set[str]] = {}
    for names in orders:
        for name in names:
            graph.setdefault(name, set())
        for before, after in itertools.pairwise(names):
            graph[after].add(before)
    try:
        return tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError:
        return None


class JoinOrders:
    """Those of the paths of a branch; make one before what they left is stored."""

    def __init__(self, session: Session, paths: Iterable[Path]) -> None:
        self._session = session
        self._paths = list(paths)
        self._before = {
            id(owner): tuple(ordered_space(owner) or ()) for path in self._paths for owner in path.places.owners()
        }

    def finish(self, made: Iterable[int], location: Location | None) -> None:
        """Call when that is stored. ``made``: identities of the objects that a path made."""
        journal, of_one = self._session.journal, set(made)
        for path in self._paths:
            journal.frames[-1].disordered |= path.places.disordered
            journal.frames[-1].disordered.update(dict.fromkeys(path.places.perhaps, location))
        owners = {id(owner): owner for path in self._paths for owner in path.places.owners()}
        for key, owner in owners.items():
            ends = [path.places.orders[key] for path in self._paths if key in path.places.orders]
            if len(ends) < len(self._paths) and key not in of_one:
                ends.append(self._before[key])
            names = _one_order(dict.fromkeys(ends))
            if names is None:
                journal.disorder(owner, location)
            else:
                put_in_order(owner, names)


class LoopOrders(LoopPart):
    """Those of the iterations of a loop: each leaves the order that it found, or the object is disordered."""

    def __init__(self) -> None:
        self._disordered: set[int] = set()

    def arguments(self, body: Body) -> list[Variable]:
        """None; what an iteration disorders is so in the next one from its beginning."""
        body.session.journal.frames[-1].disordered.update(dict.fromkeys(self._disordered, body.location))
        return []

    def leave(self, body: Body, path: Path, pairs: Pairs) -> bool:
        """Whether it disorders nothing more than what was known."""
        found = {id(owner) for owner in self._disorders(body, path)}
        is_known = found <= self._disordered
        self._disordered |= found
        return is_known

    def finish(self, body: Body, op: Operator, path: Path, pairs: Pairs) -> None:
        """After the loop, attributes that iterations add are in their order."""
        session = body.session
        session.journal.frames[-1].disordered.update(dict.fromkeys(self._disordered, body.location))
        for owner in self._disorders(body, path):
            session.journal.disorder(owner, body.location)

    def _disorders(self, body: Body, path: Path) -> list[Any]:
        """The older objects whose order an iteration changes; of others it becomes that of before and after it."""
        disordered, places = [], path.places
        for owner in places.owners():
            key = id(owner)
            if key not in body.older and key not in body.session.objects.externals:
                continue
            names = _one_order((tuple(ordered_space(owner) or ()), places.orders[key]))
            first = all(_is_of_first(places, Place("attribute", owner, name)) for name in places.perhaps.get(key, ()))
            if names is None or key in places.disordered or not first:
                disordered.append(owner)
            else:
                put_in_order(owner, names)
        return disordered


def _is_of_first(places: Frame, place: Place) -> bool:
    """Whether an attribute is missing in the first iteration of a loop and in no other."""
    return place in places and not _is_missing(places[place]) and _is_missing(place.get())


def _is_missing(value: Any) -> bool:
    return value is MISSING or is_a(value, structure.Choice) and any(one is MISSING for one in value.options)


__all__ = ["JoinOrders", "LoopOrders"]
