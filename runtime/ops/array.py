"""Array operators: Python lists as values. Every operator gives a new list; none changes its argument.

``FUNCTIONS`` is their meaning. An executor may work in place where the old list is never read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from runtime.ir.definition import About, Fail, OpDefinition
from runtime.ir.inference import common, element_of, type_of
from runtime.ir.operator import Operator
from runtime.ir.types import ArrayType, ScalarType, Type
from runtime.ir.variable import Operand
from runtime.ops.arity import check_attrs, check_no_kwargs, check_plain


def new(items: Iterable[Any]) -> list[Any]:
    """``list(items)``."""
    return list(items)


def append(array: list[Any], item: Any) -> list[Any]:
    """The list with one more item at the end."""
    return [*array, item]


def get(array: list[Any], index: int) -> Any:
    """``array[index]``; IndexError as in Python."""
    return array[index]


def set_(array: list[Any], index: int, item: Any) -> list[Any]:
    """The list with another item at an index; IndexError as in Python."""
    result = list(array)
    result[index] = item
    return result


def load(array: list[Any], index: int | None) -> Any:
    """``array[index]``, of a row that the tracer knows to be there; nothing for None, which stands for no row."""
    return [] if index is None else array[index]


def store(array: list[Any], index: int, item: Any) -> list[Any]:
    """The list with another item at the index of a row that the tracer knows to be there."""
    return set_(array, index, item)


def length(array: list[Any]) -> int:
    """``len(array)``."""
    return len(array)


def pop(array: list[Any], index: int = -1) -> tuple[list[Any], Any]:
    """The list without the item at an index, and that item; IndexError as in Python."""
    result = list(array)
    item = result.pop(index)
    return result, item


def extend(array: list[Any], items: Iterable[Any]) -> list[Any]:
    """The list with the items of another iterable at the end."""
    return [*array, *items]


def slice_(array: list[Any], where: slice) -> list[Any]:
    """``array[where]``."""
    return array[where]


def concat(array: list[Any], other: list[Any]) -> list[Any]:
    """``array + other``."""
    return array + other


def fill(array: list[Any], item: Any) -> list[Any]:
    """A list as long as another, of one item."""
    return [item] * len(array)


def fill_each(array: list[list[Any] | None], item: Any) -> list[list[Any] | None]:
    """For each list of a list, one as long, of one item; None where none is: the item is another kind of value."""
    return [None if row is None else [item] * len(row) for row in array]


def lookup(array: list[int | None], table: list[int]) -> list[int | None]:
    """What stands in a table at each of the list's numbers; None where none is: the item is another kind of value."""
    return [None if index is None else table[index] for index in array]


def rows(array: list[Any], columns: list[list[Any]]) -> list[list[Any]]:
    """For each item of a list, a list of what stands there in each of some others."""
    return [[column[index] for column in columns] for index in range(len(array))]


def pick(which: list[int | None], columns: list[list[Any]]) -> list[Any]:
    """For each number of a list, what stands there in the column of that number; None where none is: the item is
    another kind of value."""
    return [None if number is None else columns[number][index] for index, number in enumerate(which)]


def set_order(columns: list[list[Any]], in_tuples: bool) -> list[int]:
    """In which order Python goes over a set to which the items of a list were added one by one: their places.

    >>> set_order([[10, 3, 1]], False), set_order([[1, 2], [0, 0]], True) == set_order([[1, 2], [0, 0]], True)
    ([2, 0, 1], True)
    """
    items = list(zip(*columns)) if in_tuples else columns[0]
    places = {item: place for place, item in enumerate(items)}
    return [places[item] for item in set(items)]


# name -> (function, fewest arguments, most arguments, outputs)
_TABLE: dict[str, tuple[Callable[..., Any], int, int, int]] = {
    "array.new": (new, 1, 1, 1),
    "array.append": (append, 2, 2, 1),
    "array.get": (get, 2, 2, 1),
    "array.set": (set_, 3, 3, 1),
    "array.load": (load, 2, 2, 1),
    "array.store": (store, 3, 3, 1),
    "array.fill_each": (fill_each, 2, 2, 1),
    "array.len": (length, 1, 1, 1),
    "array.pop": (pop, 1, 2, 2),
    "array.extend": (extend, 2, 2, 1),
    "array.slice": (slice_, 2, 2, 1),
    "array.concat": (concat, 2, 2, 1),
    "array.fill": (fill, 2, 2, 1),
    "array.lookup": (lookup, 2, 2, 1),
    "array.rows": (rows, 2, 2, 1),
    "array.pick": (pick, 2, 2, 1),
    "array.set_order": (set_order, 2, 2, 1),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {name: row[0] for name, row in _TABLE.items()}
"""``"array.append" -> append``: what each operator computes."""


def _list_of(element: Type | None) -> Type | None:
    return None if element is None else ArrayType(element)


def _of_new(op: Operator) -> list[Type | None]:
    items = op.args[0]
    if isinstance(items, (list, tuple)):
        return [_list_of(common(map(type_of, items)))]
    return [type_of(items)]


def _of_fill(op: Operator) -> list[Type | None]:
    return [_list_of(type_of(op.args[1]))]


def _of_fill_each(op: Operator) -> list[Type | None]:
    return [_list_of(_list_of(type_of(op.args[1])))]


def _same(op: Operator) -> list[Type | None]:
    return [type_of(op.args[0])]


def _of_rows(op: Operator) -> list[Type | None]:
    columns: Operand = op.args[1]
    elements = [element_of(column) for column in columns] if isinstance(columns, (list, tuple)) else []
    row = _list_of(common(elements))
    return [_list_of(row)]


def _of_pick(op: Operator) -> list[Type | None]:
    columns: Operand = op.args[1]
    elements = [element_of(column) for column in columns] if isinstance(columns, (list, tuple)) else []
    return [_list_of(common(elements))]


_INFER: dict[str, Callable[[Operator], list[Type | None]]] = {
    "array.new": _of_new,
    "array.append": _same,
    "array.get": lambda op: [element_of(op.args[0])],
    "array.set": _same,
    "array.load": lambda op: [element_of(op.args[0])],
    "array.store": _same,
    "array.fill_each": _of_fill_each,
    "array.len": lambda op: [ScalarType("int")],
    "array.pop": lambda op: [type_of(op.args[0]), element_of(op.args[0])],
    "array.extend": _same,
    "array.slice": _same,
    "array.concat": _same,
    "array.fill": _of_fill,
    "array.lookup": _same,
    "array.rows": _of_rows,
    "array.pick": _of_pick,
    "array.set_order": lambda op: [ArrayType(ScalarType("int"))],
}
"""What each operator gives. A list that items are put into keeps its type: it holds theirs."""


def _verify(op: Operator, fail: Fail) -> None:
    _, least, most, outputs = _TABLE[op.name]
    check_plain(op, fail, least, most, outputs)
    check_no_kwargs(op, fail)
    check_attrs(op, fail, {})


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition(name, str(function.__doc__).partition("\n")[0], verify=_verify, evaluate=function,
                 infer=_INFER[name], neutral=True, hands_on=True, about=About.LISTS)
    for name, function in FUNCTIONS.items()
]
