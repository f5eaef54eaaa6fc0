"""Which tensors are one object among those that calls of a recursive function are given, or give.

Two places that have the same object in every call have one in the trace, so nothing has to be asked. Of two that have
it in some calls nobody can tell: ``is`` is refused. What the calls have is a part of the fixed point that the body is
traced for: at first it is taken to be as in the first call, or on the paths that make no other call.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from runtime.ir import Variable
from runtime.kinds import is_a
from runtime.tracer.recording.session import Session
from runtime.tracer.values import same_object, structure
from runtime.tracer.values.origins import Carried, Given, Itself, Joined, Left, OneOf, Origin, Verdict

Leaf = tuple[int, Any]
"""The place of a tensor's Variable among those that carry a value, and the tensor."""


def leaves(value: Any, carried: structure.Structure, at: int = 0) -> Iterator[Leaf]:
    """The tensors of a value, but for those of which it may have one or another; a place that has one of several
    tensors has something else."""
    if is_a(carried, structure.Tensor):
        yield at, value
    elif is_a(carried, (structure.Sequence, structure.Fields)):
        for item, inner in zip(_items(value, carried), carried.items):
            yield from leaves(item, inner, at)
            at += structure.width(inner)


def _items(value: Any, carried: structure.Sequence | structure.Fields) -> Sequence[Any]:
    if value is None or is_a(value, structure.Choice):
        return [None] * len(carried.items)
    if is_a(carried, structure.Sequence):
        return list(value)
    fields = structure.field_items(value)
    assert fields is not None
    return fields[1]


class GivenTensors:
    """What is known of the tensors at each place, in all calls so far."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pairs: dict[tuple[int, int], Verdict] = {}
        self._older: dict[int, dict[Origin, None]] = {}
        self._itself: dict[int, torch.Tensor | None] = {}
        """Of results: what is older than the calls, and is what they give in all of them."""

    def include(self, found: Sequence[Leaf], since: int | None = None) -> bool:
        """One more call; whether it has anything that was not known. ``since``: what was made before that, by number,
        is older than all calls; None where that does not matter."""
        session, news = self._session, False
        for (i, a), (j, b) in itertools.combinations(found, 2):
            tensors = is_a(a, torch.Tensor) and is_a(b, torch.Tensor)
            verdict: Verdict = same_object.related(session, a, b) if tensors else "unknown"
            before = self._pairs.setdefault((i, j), verdict)
            if before != verdict and before != "unknown":
                self._pairs[i, j] = "unknown"
                news = True
        if since is None:
            return news
        for place, value in found:
            known = self._older.setdefault(place, {})
            first = not known
            for one in self._origins(value, since):
                if one not in known:
                    known[one] = None
                    news = news or not first
        return news

    def include_itself(self, found: Sequence[Leaf], older: Sequence[torch.Tensor]) -> bool:
        """Tell what one more call gives of ``older`` as it is; whether anything is other than it was known."""
        session, news = self._session, False
        for place, value in found:
            known = self._itself.get(place)
            if place in self._itself and known is None:
                continue
            tried = () if not is_a(value, torch.Tensor) else older if known is None else (known,)
            now = next((one for one in tried if same_object.related(session, value, one) == "same"), None)
            news = news or (known is not None and now is None)
            self._itself[place] = now
        return news

    def _origins(self, value: Any, since: int) -> Iterator[Origin]:
        """What is older than the calls, of what a tensor can be."""
        session = self._session
        todo: list[Origin | None] = []
        if is_a(value, torch.Tensor):
            one = session.one(value)
            if is_a(session.origins.known(one), Given) and not _shares(session, one):
                return
            todo.append(session.origins.of(one))
        seen: set[Origin] = set()
        while todo:
            origin = todo.pop()
            if origin is None or origin in seen:
                continue
            seen.add(origin)
            if is_a(origin, Joined):
                todo += origin.by_path
            elif is_a(origin, OneOf):
                todo += origin.options
            elif is_a(origin, Left):
                todo.append(origin.carried)
            elif is_a(origin, Carried):
                todo += (origin.first, origin.next)
            elif is_a(origin, Given) and origin.pairs is self._pairs:
                todo += origin.older or ()
            elif is_a(origin, Given) or (is_a(origin, Itself) and origin.made <= since):
                yield origin

    def known(self, variables: Sequence[Variable]) -> dict[Variable, torch.Tensor]:
        """By the Variables that carry a result: what is always older than the calls."""
        found = {variables[place]: one for place, one in self._itself.items() if one is not None}
        return {var: self._session.one(one) for var, one in found.items()}

    def variables(self, variables: Sequence[Variable]) -> list[Variable]:
        """The Variables of tensors that are one in all calls are one."""
        found = list(variables)
        for (i, j), verdict in sorted(self._pairs.items()):
            if verdict == "same":
                found[j] = found[i]
        return found

    def note(self, tensors: Sequence[torch.Tensor], found: Sequence[Leaf], arguments: bool) -> None:
        """Say of the tensors that stand for those of a call which objects they are; ``found``: their places."""
        session = self._session
        call, number = object(), session.origins.number()
        session.origins.some_given = True
        places = {id(tensor): place for place, tensor in reversed(found)}
        for tensor in tensors:
            place = places.get(id(tensor), -1)
            older = list(self._older.get(place, ())) if arguments else None
            session.origins.note(tensor, Given(number, call, place, self._pairs, older))


def _shares(session: Session, tensor: torch.Tensor) -> bool:
    """Whether what a recursive function is given or gives may be what was there before."""
    info = session.info(tensor)
    origin = session.origins.known(tensor)
    if is_a(origin, Given) and origin.older is not None:
        return True
    return any(one.other() is not info.storage for one in info.storage.unknown_aliases)


__all__ = ["GivenTensors", "leaves"]
