"""In which runs a container exists that a path made, by the numbers that tell which of several values are.

    if c:                        where the dict exists, %which is 0: ``state`` is the dict, else None
        state = {}
    ...
    if state is None:            here %which is 1, so there is no such dict in any run that comes here:
        state = {}               this one and that one can be the same object while tracing

So what is made where it is missing is one container, however many paths may make it (see ``merged``); and nothing is
asked about what a container holds on a path where there is none. A fact that is not known costs Operators, and never
changes what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runtime.ir import Operand, Operator, ScalarType, Variable
from runtime.kinds import is_a
from runtime.tracer.numbers import selected
from runtime.tracer.python_state.notes import others
from runtime.tracer.values import structure

if TYPE_CHECKING:
    from runtime.tracer.control.branches import Path
    from runtime.tracer.recording.session import Scope, Session

Facts = Mapping[Variable, frozenset[int]]
"""Where the container exists, each number is one of these."""
_INT = ScalarType("int")


def missing(scope: Scope, facts: Facts) -> bool:
    """Whether no run that comes to a Block has what such facts are about."""
    for variable, values in facts.items():
        possible = selected.possible(scope, variable)
        if possible is not None and possible.isdisjoint(values):
            return True
    return False


def is_missing(path: Path, container: Any) -> bool:
    """Whether a container that was there before a path exists in no run that takes it."""
    known = path.existing.get(id(container))
    return known is not None and missing(path.scope, known[1])


def note_join(
    session: Session, op: Operator, paths: Sequence[Path], made: Sequence[Iterable[Any]],
    one: Iterable[tuple[Any, Mapping[int, Any]]], others: Iterable[Any],
) -> None:  # fmt: skip
    """After a join: what is known of containers that paths made (``made``, by path), that stand for several since
    (``one``: by path, for which), and that were there before (``others``)."""
    alive = [number for number, path in enumerate(paths) if not path.ended]
    outputs = [(output, [paths[number].scope.block.yields[place] for number in alive])
               for place, output in enumerate(op.outputs) if output.type == _INT]  # fmt: skip
    if not outputs:
        return
    one = list(one)
    merged = {id(member) for stand_in, members in one for member in (stand_in, *members.values())}
    existing = session.containers.existing
    for number in alive:
        for container in made[number]:
            if id(container) not in merged:
                path = paths[number]
                before = {one: values for one, values in _facts(path, container).items()
                          if session.visible(one)}  # fmt: skip
                now = _joined(paths, alive, outputs, {number: container})
                _note(session, container, {**before, **path.scope.selected, **now})
    for container in others:
        if id(container) not in merged and id(container) in existing:
            there = {number: container for number in alive if not is_missing(paths[number], container)}
            _note(session, container, {**existing[id(container)][1], **_joined(paths, alive, outputs, there)})
    for container, members in one:
        kept = {variable: set[int]() for variable in existing.pop(id(container), (None, {}))[1]}
        for number, member in members.items():
            facts = _facts(paths[number], member)
            for variable in list(kept):
                values = facts.get(variable) or selected.possible(paths[number].scope, variable)
                if values is None:
                    del kept[variable]
                else:
                    kept[variable] |= values
        now = {variable: frozenset(values) for variable, values in kept.items()}
        _note(session, container, {**now, **_joined(paths, alive, outputs, members)})


def _note(session: Session, container: Any, facts: Facts) -> None:
    if facts:
        holder = session.containers.known_to_exist.setdefault(id(container), (container,))
        session.containers.existing[id(container)] = holder, facts


def _facts(path: Path, container: Any) -> Facts:
    return path.existing[id(container)][1] if id(container) in path.existing else {}


def forget_unused(session: Session) -> None:
    """Let go of the containers that nothing refers to any more."""
    containers = session.containers
    for key in list(containers.known_to_exist):
        container = containers.known_to_exist[key][0]
        if others(container) <= 1:
            del containers.known_to_exist[key]
            containers.existing.pop(key, None)


def _joined(
    paths: Sequence[Path], alive: Sequence[int], outputs: Sequence[tuple[Variable, list[Operand]]],
    there: Mapping[int, Any],
) -> dict[Variable, frozenset[int]]:  # fmt: skip
    """What numbers that a join gives say of a container; ``there``: by path, which one it is."""
    found = {}
    for output, yields in outputs:
        values: set[int] | None = set()
        for number, yielded in zip(alive, yields):
            if number in there and values is not None:
                more = _values(paths[number], yielded, there[number])
                values = None if more is None else values | more
        if values is not None and len(values) < len(set(yields)):
            found[output] = frozenset(values)
    return found


def _values(path: Path, yielded: Operand, container: Any) -> frozenset[int] | None:
    """What a path may yield where a container exists; None: anything."""
    if type(yielded) is int:
        return frozenset((yielded,))
    if not is_a(yielded, Variable):
        return None
    facts = _facts(path, container)
    possible = selected.possible(path.scope, yielded)
    if yielded in facts:
        return facts[yielded] if possible is None else facts[yielded] & possible
    return possible


def note_iteration(session: Session, carried: Iterable[tuple[structure.Structure, Any]]) -> None:
    """In the body of a loop, or after it: what stands for a container that iterations make exists where one of the
    values that it is part of is that. ``carried``: all that the loop carries, each beside its structure."""
    ways: dict[int, tuple[Any, list[Facts]]] = {}
    todo: list[tuple[structure.Structure, Any, Facts]] = [(s, value, {}) for s, value in carried]
    while todo:
        s, value, way = todo.pop()
        if is_a(s, structure.Made):
            ways.setdefault(id(value), (value, []))[1].append(way)
        elif is_a(s, structure.Options):
            todo += [(option, one, {**way, value.selector.var: frozenset((index,))})
                     for index, (option, one) in enumerate(zip(s.options, value.options))]  # fmt: skip
        elif is_a(s, structure.Sequence):
            todo += [(item, one, way) for item, one in zip(s.items, value)]
        elif is_a(s, structure.Fields):
            fields = structure.field_items(value)
            todo += [(item, one, way) for item, one in zip(s.items, () if fields is None else fields[1])]
    for value, found in ways.values():
        facts = {variable: frozenset[int]().union(*(way[variable] for way in found))
                 for variable in found[0] if all(variable in way for way in found)}  # fmt: skip
        if structure.is_container(value):
            _note(session, value, facts)


__all__ = ["Facts", "forget_unused", "is_missing", "missing", "note_iteration", "note_join"]
