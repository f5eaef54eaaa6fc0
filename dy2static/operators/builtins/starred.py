"""Builtins with a star in front of a list whose length only the run knows: ``zip(*rows)``, ``max(*xs)``.

Other callees have parameters that take such items (see ``dy2static.operators.calls.starred_call``).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.builtins import itertools_
from dy2static.operators.calls import growing
from dy2static.operators.calls.call import traced
from dy2static.operators.calls.sequences import GrownItems, StagedMap, StagedZip, Transposed
from dy2static.operators.iteration.traced_for import as_list
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.values import array
from runtime.tracer.values.choices import lengths

Call = Callable[[Session, list[Any]], Any]


def handler_of(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """What stands for ``f(*items)``, called with the items as one list; None for those without, and with keywords."""
    if kwargs or is_a(args[0], (list, tuple)):
        return None
    return _HANDLERS.get(f) if is_a(f, type) or f in (max, min) else None


def _zip(session: Session, rows: list[Any]) -> Transposed:
    def columns() -> tuple[Any, ...]:
        count = _items_in(session, array.get(session, rows, 0))
        return tuple(_column(session, rows, index) for index in range(count))

    return Transposed(tracer_cond.cond(session, array.length(session, rows) == 0, tuple, columns, NO_NAMES))


def _items_in(session: Session, row: Any) -> int:
    found = lengths(row) if is_a(row, Choice) else set()
    if is_a(row, (tuple, list)) and not growing.is_growing(row):
        found = {len(row)}
    elif is_a(row, torch.Tensor) and session.fake(row).dim() and type(row.shape[0]) is int:
        found = {row.shape[0]}
    count = found.pop() if len(found) == 1 else None
    if count is None:
        raise growing.refusal(session, "a star (*) in a call of zip(), with rows whose length is not known, in front")
    return count


def _column(session: Session, rows: list[Any], index: int) -> Any:
    taken = StagedMap(lambda row: _item(session, row, index), StagedZip([GrownItems(rows)], False))
    return traced(session, tuple, (as_list(session, taken),), {})


def _item(session: Session, row: Any, index: int) -> Any:
    return traced(session, operator.getitem, (row, index), {})


def _extreme(function: Any) -> Call:
    def find(session: Session, items: list[Any]) -> Any:
        """Of one argument it would be the largest of its items."""
        return tracer_cond.cond(
            session, array.length(session, items) == 1,
            lambda: traced(session, function, (array.get(session, items, 0),), {}),
            lambda: traced(session, function, (items,), {}), NO_NAMES)

    return find


_HANDLERS: dict[Any, Call] = {
    zip: _zip, max: _extreme(max), min: _extreme(min),
    itertools.chain: lambda session, lists: itertools_.FROM_ITERABLE(session, (lists,), {}),
}
