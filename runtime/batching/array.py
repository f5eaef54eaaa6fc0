"""Lists: one list, of as many items in each row. Where rows read different items, each of these is taken once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.batching.joining import filled_in
from runtime.batching.machine import Machine, Scope
from runtime.batching.rows import Mask, Rows, row_by_row
from runtime.ir import Operator
from runtime.ops.array import FUNCTIONS

_INDEXED = {"array.get", "array.set", "array.load", "array.store", "array.pop", "array.slice"}
"""Operators whose second operand says where."""


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The list, or the item, and both for ``pop``."""
    function = FUNCTIONS[op.name]
    args = [machine.read(arg, scope) for arg in op.args]
    if op.name == "array.lookup":
        array, table = args
        return [[row_by_row(machine.domain, lambda place, *row: row[place], [place, *table]) for place in array]]
    if op.name == "array.pick" and any(isinstance(number, Rows) for number in args[0]):
        return machine.by_value(op, args[0], lambda mask, values: [function(values, args[1])])
    if op.name == "array.set_order":
        columns, in_tuples = args
        length = len(columns[0])

        def ordered(mask: Mask | None, values: list[Any]) -> Sequence[Any]:
            return [function([values[start: start + length] for start in range(0, len(values), length)], in_tuples)]

        return machine.by_value(op, [item for column in columns for item in column], ordered) if length else [[]]
    if op.name in _INDEXED and len(args) > 1:
        where = args[1]
        parts = [where.start, where.stop, where.step] if isinstance(where, slice) else [where]
        if any(isinstance(part, Rows) for part in parts):

            def chosen(mask: Mask | None, values: list[Any]) -> Sequence[Any]:
                place = slice(*values) if isinstance(where, slice) else values[0]
                array, items = args[0], args[2:]
                if mask is not None:
                    array, items = filled_in(mask, array), [filled_in(mask, item) for item in items]
                return _results(op, function(array, place, *items))

            return machine.by_value(op, parts, chosen)
    return _results(op, function(*args))


def _results(op: Operator, given: Any) -> Sequence[Any]:
    return list(given) if len(op.outputs) > 1 else [given]
