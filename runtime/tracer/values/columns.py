"""The arrays that carry the items of a list that grows, in a structure that holds more kinds of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.ir import ArrayType, Operand, ScalarType, TensorType, Type, Variable
from runtime.kinds import is_a
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
    made = _columns(session, grown, grown.item, item, list(grown.variables), context)
    return Growing(tuple(made), item, grown.alias_set)


def _is_nothing(item: structure.Structure) -> bool:
    """Whether this is the structure of the items of a list that had none yet."""
    return is_a(item, structure.Options) and not item.options


def _columns(
    session: Session, grown: Growing, item: structure.Structure, wider: structure.Structure, columns: list[Variable],
    context: structure.JoinContext,
) -> list[Variable]:  # fmt: skip
    """The arrays that carry the items of a list, or a part of them, in a wider structure: items of one length become
    lists that grow, and which of several a part is counts among the wider ones.

    Raises:
        TraceError: D2S251, where they would have to be told apart.
    """
    if is_a(wider, structure.Options):
        return _chosen(session, grown, item, wider, columns, context)
    if is_a(item, structure.Options) and len(item.options) == 1:
        item, columns = item.options[0], columns[1:]
    if is_a(item, structure.Options) and is_a(wider, structure.Array):
        return _chosen(session, grown, item, structure.Options((wider,)), columns, context)[1:]
    if is_a(wider, structure.Array) and is_a(item, structure.Sequence):
        wider.alias_set.merge(grown.alias_set)
        rest = list(columns)
        parts: list[list[Variable]] = []
        for part in item.items:
            mine = [rest.pop(0) for _ in range(structure.width(part))]
            parts.append(_columns(session, grown, part, wider.item, mine, context))
        made: list[Variable] = []
        for position, type_ in enumerate(types_of(session, wider.item)):
            given: list[Operand] = [grown.variables[0], [part[position] for part in parts]]
            made += session.emit("array.rows", given, types=[ArrayType(ArrayType(type_))])
        return made
    if is_a(wider, structure.Array) and is_a(item, structure.Array):
        wider.alias_set.merge(item.alias_set)
        return _wider_rows(session, item.item, wider.item, columns)
    kinds = structure.Sequence, structure.Fields
    if is_a(item, kinds) and is_a(wider, kinds) and len(item.items) == len(wider.items):
        rest, made = list(columns), []
        for inner, outer in zip(item.items, wider.items):
            mine = [rest.pop(0) for _ in range(structure.width(inner))]
            made += _columns(session, grown, inner, outer, mine, context)
        return made
    if is_a(item, structure.Known) and is_a(wider, structure.Number):  # one constant so far
        if type(item.value).__name__ != wider.kind:
            raise differ(session)
        (type_,) = types_of(session, wider)
        return list(session.emit("array.fill", [grown.variables[0], item.value], types=[ArrayType(type_)]))
    if not _is_carried_alike(session, item, wider):
        raise differ(session)
    return columns


def _chosen(
    session: Session, grown: Growing, item: structure.Structure, wider: structure.Options, columns: list[Variable],
    context: structure.JoinContext,
) -> list[Variable]:  # fmt: skip
    """The arrays that carry what is one of several, or one of more from now on.

    Raises:
        TraceError: D2S251, where two of them would have to share an array.
    """
    like = grown.variables[0]
    sources = item.options if is_a(item, structure.Options) else (item,)
    targets = [_place_of(session, option, wider, context) for option in sources]
    rest = list(columns)
    if not is_a(item, structure.Options):
        (selector,) = session.emit("array.fill", [like, targets[0]])
    else:
        selector = source = rest.pop(0)
        if targets != list(range(len(targets))):
            (selector,) = session.emit("array.lookup", [selector, targets])
    of_sources = [[rest.pop(0) for _ in range(structure.width(option))] for option in sources]
    made = [selector]
    for index, option in enumerate(wider.options):
        mine = [number for number, target in enumerate(targets) if target == index]
        parts = [_columns(session, grown, sources[number], option, of_sources[number], context) for number in mine]
        if len(parts) > 1 and structure.width(option):
            if any(map(_holds_tensors, types_of(session, option))):
                raise differ(session)  # gradients of rows go back to one column
            table: list[Operand] = [mine.index(number) if number in mine else None for number in range(len(targets))]
            (which,) = session.emit("array.lookup", [source, table])
            made += [session.emit("array.pick", [which, list(column)], types=[ArrayType(type_)])[0]
                     for column, type_ in zip(zip(*parts), types_of(session, option))]
        elif parts:
            made += parts[0]
        else:
            for type_ in types_of(session, option):
                made += session.emit("array.fill", [like, None], types=[ArrayType(type_)])
    return made


def _holds_tensors(type_: Type) -> bool:
    return _holds_tensors(type_.element) if is_a(type_, ArrayType) else is_a(type_, TensorType)


def _is_carried_alike(session: Session, item: structure.Structure, wider: structure.Structure) -> bool:
    """Whether the Variables that carry the one say the same for the other: which of several as well."""
    if types_of(session, item) != types_of(session, wider):
        return False
    if is_a(item, structure.Options) or is_a(wider, structure.Options):
        if not (is_a(item, structure.Options) and is_a(wider, structure.Options)):
            return False
        pairs = list(zip(item.options, wider.options))
        return all(_place_of(session, option, wider, PLAIN) == place for place, option in enumerate(item.options)) and (
            all(_is_carried_alike(session, *pair) for pair in pairs))
    if is_a(item, structure.Array) and is_a(wider, structure.Array):
        return _is_carried_alike(session, item.item, wider.item)
    kinds = structure.Sequence, structure.Fields
    if is_a(item, kinds) and is_a(wider, kinds) and len(item.items) == len(wider.items):
        return all(_is_carried_alike(session, *pair) for pair in zip(item.items, wider.items))
    return True


def _wider_rows(
    session: Session, item: structure.Structure, wider: structure.Structure, columns: list[Variable]
) -> list[Variable]:
    """The arrays of lists whose items get a wider structure, which may be one of several kinds more.

    Raises:
        TraceError: D2S251, where they would have to be told apart.
    """
    if _is_nothing(item) and not _is_nothing(wider):
        return [session.emit("array.fill", [columns[0], []], types=[ArrayType(ArrayType(type_))])[0]
                for type_ in types_of(session, wider)]  # fmt: skip
    if not is_a(wider, structure.Options):
        if not _is_carried_alike(session, item, wider):
            raise differ(session)
        return columns
    sources = item.options if is_a(item, structure.Options) else (item,)
    places = [_place_of(session, option, wider, PLAIN) for option in sources]
    if len(set(places)) < len(places):
        raise differ(session)
    if is_a(item, structure.Options):
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
        if not _is_carried_alike(session, option, wider.options[place]):
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
