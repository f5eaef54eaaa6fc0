"""``str.join``, where a piece may be text that is only known while the Program runs."""

from __future__ import annotations

from typing import Any

from dy2static.operators.calls import growing
from dy2static.operators.calls.sequences import GrownItems
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.iteration import generator_uses
from dy2static.operators.iteration.traced_for import fold
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.shared.staging import Choice, Session, Staged, distribute, spread
from dy2static.operators.values import texts
from runtime.ir import ScalarType
from runtime.kinds import is_a
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.scalars import python_type
from runtime.tracer.values import array, containers, structure


def str_join(session: Session, between: str, pieces: Any) -> Any:
    """``between.join(pieces)``."""
    several = pieces if is_a(pieces, Choice) else containers.several(pieces)
    if several is not None:
        return distribute(session, several, lambda option: str_join(session, between, option))
    pieces = generator_uses.listed(session, pieces, generator_uses.Asks.ITERATOR)
    if growing.is_growing(pieces):
        return _grown(session, between, array.copy(pieces))
    note_answers(session, pieces)
    items = list(pieces)
    if all(_is_text(item) for item in items):
        # piece by piece: all at once would be as many paths as there are combinations
        return _joined(between, list(texts.few(session, items)))
    return spread(session, items, lambda given: _joined(between, given))


def _grown(session: Session, between: str, pieces: list[Any]) -> Any:
    """The same for a list whose length only the run knows: piece by piece, in a loop."""
    if not _are_texts(array.content(pieces).item):
        raise growing.refusal(session, "str.join()")

    def joined() -> Any:
        rest = GrownItems(array.slice_(session, pieces, slice(1, None)))
        empty = scalars.wrap(session.emit("scalar.str", [""], types=[ScalarType("str")])[0])
        start: Any = empty + array.get(session, pieces, 0)  # text of the run: else it is one of ever more
        return fold(session, rest, start, lambda text, piece: text + between + piece)

    return if_expr(array.length(session, pieces) == 0, lambda: "", joined)


def _are_texts(item: structure.Structure) -> bool:
    if is_a(item, structure.Options):
        return all(map(_are_texts, item.options))
    return is_a(item, structure.Number) and item.kind == "str" or (
        is_a(item, structure.Known) and type(item.value) is str)


def _is_text(value: Any) -> bool:
    """Whether a value is text, whichever it is."""
    options = value.options if is_a(value, Choice) else (value,)
    return all(issubclass(python_type(option), str) for option in options)


def _joined(between: str, items: list[Any]) -> Any:
    for index, item in enumerate(items):
        if not _is_text(item):
            found = python_type(item).__name__
            raise TypeError(f"sequence item {index}: expected str instance, {found} found")
    if not any(is_a(item, (Staged, Choice)) for item in items):
        return between.join(items)
    text: Any = items[0]
    for item in items[1:]:
        text = text + between + item if between else text + item
    return text if len(items) > 1 else text + ""


__all__ = ["str_join"]
