"""Sizes and numbers that a loop changes in step.

    while out.sum() > 0:                                keys: [2, n + 4]     ids: [2, n + 5]     i: n
        keys = torch.cat([keys, new], 1)
        ids = torch.cat([ids, token], 1)
        i += 1

Taken one by one, each would be a size of which nothing is known: whether the mask fits the keys, and that the last
token is there, could only be told in a run. So what an iteration adds to each is compared. Sizes and numbers to which
it adds the same, or always a multiple of it, are a *group*: they are carried as what they were before the loop and one
symbol. That is a guess like the others of an attempt (see ``while_loop``): the next attempt shows whether it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from runtime import torch_internals
from runtime.ir import Variable
from runtime.kinds import is_a
from runtime.tracer.values import structure
from runtime.tracer.values.structure import (
    DYNAMIC,
    Choice,
    Fields,
    Number,
    Options,
    Structure,
    Tensor,
    field_items,
    width,
)

if TYPE_CHECKING:
    import sympy

    from runtime.tracer.recording.session import Session
else:
    from runtime.tracer.numbers.symbols import sympy

_REGROUPED = 2
"""So often a size is taken for another group's before it is left alone."""


class Spot(NamedTuple):
    """A size or number among what a loop carries."""

    slot: int
    way: tuple[int, ...]
    """The way to it through tuples and the like, and to one of several that the value may be."""
    dim: int | None
    """Of a tensor; None for a number."""
    sure: bool
    """Whether it is there in every run: if it is one of several, others may be."""


class Held(NamedTuple):
    """What one slot holds: before the loop, at the beginning of an iteration, at its end."""

    init: Any
    inner: Any
    out: Any


@dataclass(frozen=True)
class Group:
    """What grows together. ``factors``: how much by, as a multiple of what the first one does."""

    factors: dict[Spot, int]
    counted: bool
    """An iteration adds a number that is known, and more than 0: so a size is never less than before the loop."""

    def __contains__(self, spot: object) -> bool:
        return spot in self.factors

    def unit(self, added: dict[Spot, Any]) -> Any:
        """What an iteration adds for a factor of 1; None if that differs."""
        units = {added.get(spot) if factor == 1 else _part(added.get(spot), factor)
                 for spot, factor in self.factors.items()}  # fmt: skip
        unit = units.pop()
        known = unit is not None and (not self.counted or (unit.is_Integer and unit > 0))
        return unit if known and not units else None


def _part(added: Any, factor: int) -> Any:
    return added / factor if added is not None and added.is_Integer and added % factor == 0 else None


class Steps:
    """The groups of one attempt."""

    def __init__(self, groups: Sequence[Group] = (), regrouped: dict[Spot, int] | None = None) -> None:
        self.groups = groups
        self._regrouped = regrouped or {}

    # -- what stands for them ------------------------------------------------------------------------------------

    def told(
        self, session: Session, carried: Sequence[Structure], inits: Sequence[Any], variables: Sequence[Variable]
    ) -> list[Structure]:
        """The structures of the slots with what is known of their sizes, and the same noted of numbers.

        ``variables``: those that carry the slots.
        """
        found = list(carried)
        places = _variables_of(carried, variables)
        for group in self.groups:
            starts = {one: _expression(session, inits[one.slot], carried[one.slot], one, {}) for one in group.factors}
            leader = next(iter(group.factors))
            visible = all(one is not None and session.sizes.are_visible(one) for one in starts.values())
            if not visible or any(spot[:2] not in places for spot in group.factors):
                continue
            more = session.sizes.added(places[leader[:2]], leader.dim, starts[leader], group.counted)
            for spot, factor in group.factors.items():
                size = session.sizes.of_expression(starts[spot] + factor * more)
                if spot.dim is None:
                    session.sizes.note_number(places[spot[:2]], size)
                else:
                    found[spot.slot] = _with_size(found[spot.slot], spot.way, spot.dim, size)
        return found

    # -- what an iteration adds ----------------------------------------------------------------------------------

    def again(self, session: Session, carried: Sequence[Structure], held: Sequence[Held], settled: bool) -> Steps:
        """The groups of the next attempt, these very ones if what they say is so.

        ``carried``: what the slots of the next attempt are. ``settled``: they are what this one took them to be;
        else nothing is said against a group, as its sizes may have met others that this attempt took for fixed.
        """
        atoms: dict[Variable, Any] = {}
        added: dict[Spot, Any] = {}
        starts: dict[Spot, Any] = {}
        for number, (s, (init, *ends)) in enumerate(zip(carried, held)):
            for spot in _spots(number, s):
                start = _expression(session, init, s, spot, {})
                begun, end = (_expression(session, one, s, spot, atoms) for one in ends)
                if start is not None and begun is not None and end is not None:
                    starts[spot], added[spot] = start, sympy.expand(end - begun)
        groups: list[Group] = []
        free = {spot for spot in added if self._regrouped.get(spot, 0) <= _REGROUPED}
        free -= {spot for group in self.groups for spot in group.factors}
        regrouped = dict(self._regrouped)
        for group in self.groups:
            if group.unit(added) is not None or not settled:
                groups.append(group)
                continue
            for spot in group.factors:
                regrouped[spot] = regrouped.get(spot, 0) + 1
            mine = [spot for spot in group.factors if spot in added and regrouped[spot] <= _REGROUPED]
            groups += _grouped(mine, added, starts)
        joined = [_joined(group, free, added, starts) for group in groups]
        left = [spot for spot in sorted(free, key=str) if not any(spot in group for group in joined)]
        joined += _grouped(left, added, starts)
        return self if joined == list(self.groups) else Steps(joined, regrouped)


def _joined(group: Group, free: set[Spot], added: dict[Spot, Any], starts: dict[Spot, Any]) -> Group:
    """The group with those of ``free`` that go with it."""
    unit = group.unit(added)
    factors = dict(group.factors)
    leader = next(iter(factors))
    for spot in sorted(free, key=str) if unit is not None else ():
        if group.counted:
            factor = _part(added[spot], int(unit))
            if factor is not None and factor > 0:
                factors[spot] = int(factor)
        elif added[spot] == unit and _is_not_less(starts, leader, spot):
            factors[spot] = 1
    return group if len(factors) == len(group.factors) else Group(factors, group.counted)


def _grouped(spots: Sequence[Spot], added: dict[Spot, Any], starts: dict[Spot, Any]) -> Iterator[Group]:
    """Groups of sizes and numbers that are in none."""
    counted = [spot for spot in spots if _is_count(added[spot])]
    while any(spot.sure for spot in counted):
        leader = min((spot for spot in counted if spot.sure), key=lambda spot: (spot.dim is None, int(added[spot])))
        unit = int(added[leader])
        mine = [leader, *(spot for spot in counted if spot != leader and added[spot] % unit == 0)]
        yield Group({spot: int(added[spot]) // unit for spot in mine}, True)
        counted = [spot for spot in counted if spot not in mine]
    alike: dict[Any, list[Spot]] = {}
    for spot in spots:
        if added[spot] != 0 and not _is_count(added[spot]):
            alike.setdefault(added[spot], []).append(spot)
    for mine in alike.values():
        sizes = [spot for spot in mine if spot.dim is not None and spot.sure]
        least = next((one for one in sizes if all(_is_not_less(starts, one, other) for other in mine)), None)
        if least is not None and len(mine) > 1:
            yield Group(dict.fromkeys((least, *(one for one in mine if one != least)), 1), False)


def _is_count(added: Any) -> bool:
    return bool(added.is_Integer and added > 0)


def _is_not_less(starts: dict[Spot, Any], leader: Spot, spot: Spot) -> bool:
    """Whether a size surely is no less than the leader's, of which it is known that it is not negative."""
    more = sympy.expand(starts[spot] - starts[leader]) if {spot, leader} <= starts.keys() else None
    return more is not None and (spot.dim is None or bool(more.is_Integer and more >= 0))


def _parts(s: Structure) -> tuple[Structure, ...]:
    return s.options if is_a(s, Options) else s.items if is_a(s, (structure.Sequence, Fields)) else ()


def _leaves(s: Structure, way: tuple[int, ...], offset: int) -> Iterator[tuple[tuple[int, ...], int, Structure]]:
    """The tensors and numbers in a structure, each with the way to it and the number of its Variable; of what is one
    of several only tensors."""
    if is_a(s, (Tensor, Number)):
        yield way, offset, s
    several = is_a(s, Options)
    offset += several  # what says which it is
    for number, part in enumerate(_parts(s)):
        if not several or is_a(part, Tensor):
            yield from _leaves(part, (*way, number), offset)
        offset += width(part)


def _spots(number: int, s: Structure) -> Iterator[Spot]:
    """The sizes and ints in a slot that a loop changes."""
    for way, _, leaf in _leaves(s, (), 0):
        if is_a(leaf, Tensor):
            sure = _is_sure(s, way)
            yield from (Spot(number, way, dim, sure) for dim, size in enumerate(leaf.shape) if size is DYNAMIC)
        elif is_a(leaf, Number) and leaf.kind == "int":
            yield Spot(number, way, None, True)


def _is_sure(s: Structure, way: tuple[int, ...]) -> bool:
    for number in way:
        if is_a(s, Options):
            return False
        s = _parts(s)[number]
    return True


def _variables_of(
    carried: Sequence[Structure], variables: Sequence[Variable]
) -> dict[tuple[int, tuple[int, ...]], Variable]:
    found: dict[tuple[int, tuple[int, ...]], Variable] = {}
    begin = 0
    for number, s in enumerate(carried):
        for way, offset, _ in _leaves(s, (), begin):
            found[number, way] = variables[offset]
        begin += width(s)
    return found


def _expression(session: Session, value: Any, s: Structure, spot: Spot, atoms: dict[Variable, Any]) -> Any:
    """The size or number at a place of a slot's value, over symbols; None if there is none there.

    ``s``: how the slot is carried.
    """
    for number in spot.way:
        if number >= len(_parts(s)):
            return None
        several, s = is_a(s, Options), _parts(s)[number]
        if several:
            tensors = [one for one in _options(value) if _is_like(one, s)]
            if len(tensors) != 1:
                return None
            value = tensors[0]
            continue
        fields = field_items(value) if not is_a(value, (list, tuple)) else ((), value)
        if fields is None or number >= len(fields[1]):
            return None
        value = fields[1][number]
    if spot.dim is None:
        return session.sizes.in_terms(value, atoms)
    if not is_a(value, torch.Tensor) or spot.dim >= value.dim():
        return None
    size = torch_internals.size_expr(session.fake(value).shape[spot.dim])
    return sympy.Integer(size) if type(size) is int else size


def _options(value: Any) -> Iterator[Any]:
    if is_a(value, Choice):
        for option in value.options:
            yield from _options(option)
    else:
        yield value


def _is_like(value: Any, s: Structure) -> bool:
    """Whether a value is the tensor of several that a structure is."""
    if not is_a(s, Tensor) or not is_a(value, torch.Tensor):
        return False
    return (value.dim(), value.dtype, value.device) == (len(s.shape), s.dtype, s.device)


def _with_size(s: Structure, way: tuple[int, ...], dim: int, size: Any) -> Structure:
    if is_a(s, Tensor):
        return replace(s, shape=(*s.shape[:dim], size, *s.shape[dim + 1 :]))
    number, *rest = way
    parts = list(_parts(s))
    parts[number] = _with_size(parts[number], tuple(rest), dim, size)
    if is_a(s, Options):
        return Options(tuple(parts))
    assert is_a(s, (structure.Sequence, Fields))
    return replace(s, items=tuple(parts))


__all__ = ["Group", "Held", "Spot", "Steps"]
