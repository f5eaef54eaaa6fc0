"""The arrays that carry the items of a list that grows, in a structure that holds more kinds of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.ir import ArrayType, Operand, ScalarType, Variable
from runtime.tracer.values import structure, unification
from runtime.tracer.values.structure import PLAIN, Growing, types_of

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


def with_items(
    session: Session, grown: Growing, item: structure.Structure, context: structure.JoinContext
) -> Growing:
    """The same list, its items carried in a structure that holds theirs.

    Raises:
        TraceError: D2S251, where an array would have to be taken apart.
    """
    like = grown.variables[0]
    if _is_nothing(grown.item) and not _is_nothing(item):  # there are no items: any arrays will do
        made = [session.emit("array.fill", [like, None], types=[ArrayType(type_)])[0]
                for type_ in types_of(session, item)]  # fmt: skip
        return Growing(tuple(made), item, grown.alias_set)
    if not isinstance(item, structure.Options):
        source, columns_of_it = grown.item, list(grown.variables)
        if isinstance(source, structure.Options) and len(source.options) == 1:
            source, columns_of_it = source.options[0], columns_of_it[1:]
        return Growing(tuple(_columns(session, grown, source, item, columns_of_it)), item, grown.alias_set)
    if isinstance(grown.item, structure.Options):
        selector, rest = grown.variables[0], list(grown.variables[1:])
        targets = [_place_of(session, option, item, context) for option in grown.item.options]
        columns = [[rest.pop(0) for _ in range(structure.width(option))] for option in grown.item.options]
        if targets != list(range(len(targets))):
            (selector,) = session.emit("array.lookup", [selector, targets])
    else:
        targets, columns = [_place_of(session, grown.item, item, context)], [list(grown.variables)]
        (selector,) = session.emit("array.fill", [like, targets[0]])
    if len(set(targets)) < len(targets):
        raise differ(session)
    sources = grown.item.options if isinstance(grown.item, structure.Options) else (grown.item,)
    variables = [selector]
    for index, option in enumerate(item.options):
        if index in targets:
            number = targets.index(index)
            variables += _columns(session, grown, sources[number], option, columns[number])
        else:
            for type_ in types_of(session, option):
                variables += session.emit("array.fill", [like, None], types=[ArrayType(type_)])
    return Growing(tuple(variables), item, grown.alias_set)


def _is_nothing(item: structure.Structure) -> bool:
    """Whether this is the structure of the items of a list that had none yet."""
    return isinstance(item, structure.Options) and not item.options


def _columns(
    session: Session, grown: Growing, item: structure.Structure, wider: structure.Structure, columns: list[Variable]
) -> list[Variable]:
    """The arrays that carry the items of a list in a wider structure: items of one length become lists that grow.

    Raises:
        TraceError: D2S251, where they would have to be told apart.
    """
    if isinstance(wider, structure.Array) and isinstance(item, structure.Sequence):
        wider.alias_set.merge(grown.alias_set)
        rest = list(columns)
        parts: list[list[Variable]] = []
        for part in item.items:
            mine = [rest.pop(0) for _ in range(structure.width(part))]
            parts.append(_columns(session, grown, part, wider.item, mine))
        made: list[Variable] = []
        for position, type_ in enumerate(types_of(session, wider.item)):
            given: list[Operand] = [grown.variables[0], [part[position] for part in parts]]
            made += session.emit("array.rows", given, types=[ArrayType(ArrayType(type_))])
        return made
    if isinstance(wider, structure.Array) and isinstance(item, structure.Array):
        wider.alias_set.merge(item.alias_set)
        return _wider_rows(session, item.item, wider.item, columns)
    kinds = structure.Sequence, structure.Fields
    if isinstance(item, kinds) and isinstance(wider, kinds) and len(item.items) == len(wider.items):
        rest, made = list(columns), []
        for inner, outer in zip(item.items, wider.items):
            mine = [rest.pop(0) for _ in range(structure.width(inner))]
            made += _columns(session, grown, inner, outer, mine)
        return made
    if types_of(session, wider) != types_of(session, item):
        raise differ(session)
    return columns


def _wider_rows(
    session: Session, item: structure.Structure, wider: structure.Structure, columns: list[Variable]
) -> list[Variable]:
    """The arrays of lists whose items get a wider structure, which may be one of several kinds more.

    Raises:
        TraceError: D2S251, where they would have to be told apart.
    """
    old, new = types_of(session, item), types_of(session, wider)
    if _is_nothing(item) and not _is_nothing(wider):
        rows = ([session.emit("array.fill", [columns[0], []], types=[ArrayType(ArrayType(t))])[0] for t in new])
        return rows
    if not isinstance(wider, structure.Options):
        if old != new:
            raise differ(session)
        return columns
    sources = item.options if isinstance(item, structure.Options) else (item,)
    places = [_place_of(session, option, wider, PLAIN) for option in sources]
    if len(set(places)) < len(places):
        raise differ(session)
    if isinstance(item, structure.Options):
        selectors, rest = columns[0], list(columns[1:])
        if places != list(range(len(places))):
            raise differ(session)
    else:
        rest = list(columns)
        (selectors,) = session.emit(
            "array.fill_each", [columns[0], places[0]], types=[ArrayType(ArrayType(ScalarType("int")))]
        )
    made: dict[int, list[Variable]] = {}
    for option, place in zip(sources, places):
        if types_of(session, option) != types_of(session, wider.options[place]):
            raise differ(session)
        made[place] = [rest.pop(0) for _ in range(structure.width(option))]
    found = [selectors]
    for place, option in enumerate(wider.options):
        if place in made:
            found += made[place]
        else:
            for type_ in types_of(session, option):
                found += session.emit("array.fill_each", [selectors, None], types=[ArrayType(ArrayType(type_))])
    return found


def _place_of(
    session: Session, item: structure.Structure, among: structure.Options, context: structure.JoinContext
) -> int:
    for index, option in enumerate(among.options):
        if unification.fits(session, item, option, context):
            return index
    raise differ(session)


def differ(session: Session) -> Exception:
    """The located error for items that differ in structure."""
    return session.error(
        "the items of a list that grows in a loop or branch differ in structure",
        hint="Append items of one kind: all tensors, all numbers, or tuples of the same shape.",
        code="D2S251",
    )


__all__ = ["differ", "with_items"]
