"""Dicts and objects that lists which grow hold by reference: what they hold stands in a *table*, a row for each.

    rows = []
    while i < n:
        rows.append({"n": x, "k": 1})   # an array of row numbers grows, and so does each column of the table
        rows[-1]["k"] += i              # read from column "k", and put there again
        i += 1

A table is for dicts with the same keys, or objects of one class with the same attributes, and has a column for each: a
list that grows, which branches and loops carry as they do the user's (see ``heaps``, which does this for lists). All
names of such a dict have its row's number.

A dict moves into its table when it is put into a list that grows. Objects of a class that is held by reference are all
in its table, from the first branch, loop or list on that follows their ``__init__``: so no path has an object that has
moved on another path only, and objects may refer to each other in any way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Operand
from runtime.kinds import is_a
from runtime.tracer.ambient import objects, shown
from runtime.tracer.ambient.poison import keys_answer
from runtime.tracer.numbers import staging
from runtime.tracer.python_state import held, shared_items
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.held import Held, RowField, RowKey, held_in, keys_change
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values import array, containers, structure
from runtime.tracer.values.structure import Choice, Growing

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class Table:
    """Rows of what dicts with the same keys hold, or objects with the same attributes."""

    def __init__(self, cls: type, keys: tuple[Any, ...]) -> None:
        self.cls = cls
        self.columns: dict[Any, list[Any]] = {key: [] for key in keys}
        """For each key, a list like the user's that grow, or an empty one."""
        self.open: list[dict[Any, Any]] = []
        """Dicts with what a row holds, of which something goes over the items now."""

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys, or names of attributes, of all rows."""
        return tuple(self.columns)

    @property
    def held(self) -> list[Any]:
        """The first column: what a heap would hold its rows in."""
        return next(iter(self.columns.values()))

    def holds(self, value: Any) -> bool:
        """Whether a list is one of the columns."""
        return any(column is value for column in self.columns.values())

    def _column(self, session: Session, key: Any) -> Growing:
        found = structure.growing(self.columns[key])
        if found is None:
            raise session.error(
                f"a {self.cls.__name__} is used where only some paths or iterations have put one into a list whose "
                "length is only known while the Program runs", hint="Put one in before the branch or loop.",
                code="D2S251")
        return found.read()

    def get(self, session: Session, number: Any, key: Any) -> Any:
        """What a row holds under a key now."""
        grown, row = self._column(session, key), session.operand(number)
        variables: list[Any] = []
        for var in grown.variables:
            session.require_visible(var, "a list")
            variables += session.emit("array.load", [var, row])
        return array.item_of(session, grown, variables)

    def set(self, session: Session, number: Any, key: Any, value: Any) -> None:
        """Let a row hold another value under a key."""
        held.move_inside(session, (value,), self._column(session, key).item)
        grown, operands = array.lowered(session, self._column(session, key), value)
        row = session.operand(number)
        stored: list[Any] = []
        for var, operand in zip(grown.variables, operands):
            session.require_visible(var, "a list")
            stored += session.emit("array.store", [var, row, operand])
        self._put(session, key, Growing(tuple(stored), grown.item, grown.alias_set))
        for one in self.open:
            one[key] = RowField(Held(self, number), str(key))

    def add(self, session: Session, values: dict[Any, Any]) -> Any:
        """A new row; its number."""
        number = array.length(session, self.held) if self.held else 0
        for key, column in self.columns.items():
            if column:
                array.append(session, column, values[key])
            else:
                (made,) = array.of_items(session, [values[key]])
                self._put(session, key, made)
        return number

    def reference(self, session: Session, value: Any) -> Operand:
        """The number of the row that a dict or object is.

        Raises:
            TraceError: D2S226, it is none: the caller's, or one that is handed on where it cannot move.
        """
        row = structure.row_of(value)
        if row is None or row.heap is not self:
            shared_items.hold_holders(session, value)
            raise session.error(
                f"a {self.cls.__name__} is in a list whose length is only known while the Program runs, items of which "
                "are changed, and is the caller's own or comes there in a way that has no place in it",
                hint="Put a new one in (rows.append(dict(row))), or put another one in its place instead of changing "
                "it.", code="D2S226")
        return session.operand(row.number)

    def made(self, session: Session, kind: type, number: Any) -> Any:
        """Another name for a row: a dict or object, or what a dict holds."""
        row = Held(self, number)
        session.containers.has_rows = True
        if issubclass(kind, dict):
            with keys_answer():
                return kind({RowKey(row): None})
        value: Any = object.__new__(kind)
        for name in self.columns:
            object.__setattr__(value, name, RowField(row, name))
        session.objects.created[id(value)] = value
        return value

    def whole(self) -> Growing:
        """All columns as one list that grew."""
        parts = [part for column in self.columns.values() if (part := structure.growing(column)) is not None]
        item = structure.Fields(self.cls, self.keys, tuple(part.item for part in parts))
        return Growing(tuple(var for part in parts for var in part.variables), item, parts[0].alias_set)

    def _put(self, session: Session, key: Any, grown: Growing) -> None:
        column = self.columns[key]
        session.journal.note(Place("content", column), joined=True)
        column[:] = [grown]


class RowChoice(Choice):
    """A dict that is a row, or a view of one, as what operators work on: a dict with what the row holds now."""

    __slots__ = ("row", "loaded", "made")

    def __init__(self, session: Session, row: Held, shown: Callable[[dict[Any, Any]], Any] | None = None) -> None:
        self.row = row
        self.loaded = {key: row.heap.get(session, row.number, key) for key in row.heap.columns}
        self.made = dict(self.loaded)
        super().__init__(0, (self.made if shown is None else shown(self.made),))  # type: ignore[arg-type]

    def run(self, session: Session, function: Callable[[Any], Any]) -> Any:
        """``function`` of the dict; what it stores there is stored to the row.

        Raises:
            TraceError: D2S226, it gives the dict other keys.
        """
        table, made = self.row.heap, self.made
        table.open.append(made)
        result: Any = None
        try:
            result = function(self.options[0])
        finally:
            if not (hasattr(type(result), "__next__") and any(one is made for one in shown.read_by(result))):
                table.open[:] = [one for one in table.open if one is not made]
        if tuple(made) != table.keys:
            raise keys_change(session)
        for key, value in made.items():
            if value is not self.loaded[key] and type(value) is not RowField:
                table.set(session, self.row.number, key, value)
        return result


def table_for(session: Session, value: Any) -> Table | None:
    """The table that a dict's or object's row is in, or would be; None where there can be none."""
    row = structure.row_of(value)
    if row is not None:
        return row.heap if is_a(row.heap, Table) else None
    keys = _keys_of(session, value)
    if not keys:
        return None
    known = type(value), keys
    found = session.containers.heaps.get(known)
    if found is None:
        found = session.containers.heaps[known] = Table(type(value), keys)
    assert is_a(found, Table)
    return found


def _keys_of(session: Session, value: Any) -> tuple[Any, ...] | None:
    if type(value) is dict:
        choice = containers.several(value)
        if choice is not None:
            tables = [table_for(session, option) for option in choice.options]
            return tables[0].keys if tables[0] is not None and all(one is tables[0] for one in tables) else None
        return tuple(value) if all(map(is_plain, value)) else None
    known = session.objects
    if id(value) not in known.created or id(value) in known.constructing or not objects.can_be_rebuilt(value):
        return None
    return tuple(objects.attributes(value))


def move(session: Session, value: Any) -> bool:
    """Let tables hold what a dict or object does, and what it leads to; whether it could be moved.

    All get their numbers before any row is added: they may lead to each other, and a row is added column by column.
    """
    group = list(_group(session, value))
    lengths: dict[int, Any] = {}
    rows: list[tuple[Table, dict[Any, Any]]] = []
    apart: list[tuple[Table, Any]] = []
    for one in group:
        table = table_for(session, one)
        assert table is not None
        if _is_apart(one):
            apart.append((table, one))
            continue
        rows.append((table, dict(one) if type(one) is dict else objects.attributes(one)))
        number = lengths.setdefault(id(table), array.length(session, table.held) if table.held else 0)
        lengths[id(table)] = number + 1
        _let_refer(session, one, Held(table, number))
    for table, content in rows:
        table.add(session, content)
    for table, one in apart:
        _let_refer(session, one, Held(table, _added_apart(session, table, one)))
    return bool(group)


def _group(session: Session, value: Any) -> Iterator[Any]:
    """The dicts and objects that are to move with one, itself included."""
    todo, seen = [value], set()
    while todo:
        one = todo.pop()
        if is_a(one, Choice):
            todo += one.options
            continue
        if id(one) in seen or structure.row_of(one) is not None or id(one) in session.objects.externals:
            continue
        seen.add(id(one))
        if is_a(one, (tuple, list, dict)):
            if held.is_held(session, one):
                continue
            todo += one if is_a(one, tuple) else [item for _, item in containers.items_of(one)]
            shared_items.note_dict(session, one)
        elif objects.is_record(one) or session.holds_by_reference(type(one)):
            todo += objects.attributes(one).values()
        if session.holds_by_reference(type(one)) and type(one) is not list and table_for(session, one) is not None:
            yield one


def _is_apart(value: Any) -> bool:
    return type(value) is dict and containers.several(value) is not None


def _added_apart(session: Session, table: Table, value: Any) -> Any:
    """The number of the row for a dict of which some paths have made one."""
    choice = containers.several(value)
    assert choice is not None

    def added(hidden: Any) -> Any:
        row = structure.row_of(hidden)
        return row.number if row is not None else table.add(session, dict(hidden))

    return staging.switch(session, choice.selector, [functools.partial(added, one) for one in choice.options])


def _let_refer(session: Session, value: Any, row: Held) -> None:
    session.containers.has_rows = True
    if type(value) is dict:
        session.journal.note(Place("content", value), joined=True)
        value.clear()
        with keys_answer():
            value[RowKey(row)] = None
        return
    for name in objects.attributes(value):
        place = Place("attribute", value, name)
        session.journal.note(place, joined=True)
        place.set(RowField(row, name))


def settle_objects(session: Session) -> None:
    """Move all objects that the trace made of classes that are held by reference: a branch or loop begins or ends."""
    if not session.call.known.by_reference or session.replaying is not None:
        return
    for value in list(session.objects.created.values()):
        if session.holds_by_reference(type(value)) and structure.row_of(value) is None:
            move(session, value)


def unbound(session: Session, value: Any) -> Any:
    """The value; for an object that is a row, another one with what it holds now, to be read."""
    row = held_in(value) if session.containers.has_rows and not is_a(value, (list, dict, torch.Tensor)) else None
    if row is None:
        return value
    made: Any = object.__new__(type(value))
    for name in row.heap.columns:
        object.__setattr__(made, name, row.heap.get(session, row.number, name))
    return made


held.register_choice(RowChoice)

__all__ = ["RowChoice", "Table", "move", "settle_objects", "table_for", "unbound"]
