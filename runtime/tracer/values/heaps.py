"""Lists that lists which grow hold by reference: what they hold stands in a *heap*, one row for each such list.

    groups = [[x]]
    while i < n:
        groups.append([])          # an array of row numbers grows, and so does the heap
        groups[-1].append(x * i)   # the row is read from the heap, and a longer one is put in its place
        i += 1

The heap is a list that grows, too, of which branches and loops carry what it holds as they do for the user's. A list
moves into a heap when it is put into a list that grows; all names for it, and all items that are it, then have its
row's number, so each sees what another changes, and ``is`` compares numbers. What a list holds is the same before and
after the move: it may happen anywhere, but not where a value is handed from one Block to another.

This costs a load for each use of such a list. So the trace begins with copies, which is enough where nobody changes
them, and begins again with references where somebody does (``Known.by_reference``). So it does where an iteration of a
loop makes lists that several variables share on some paths only: the variables hold rows then (``Known.in_variables``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import ArrayType, Operand, Variable
from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.numbers import staging
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state import held, shared_items
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values import array, columns, containers, flattening, structure, tables, unification
from runtime.tracer.values.alias_sets import AliasSet
from runtime.tracer.values.structure import (
    PLAIN,
    Array,
    Choice,
    Growing,
    ListContent,
    Options,
    Reference,
    list_row,
    row_of,
)

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_NOTHING = Options(())
"""The structure of the items of a list that has none yet."""


class Heap:
    """Rows of what lists hold."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        """Empty, or with the arrays of all rows: a list like the user's that grow."""
        self.alias_set = AliasSet()

    def _content(self, session: Session) -> Growing:
        found = structure.growing(self.held)
        if found is None:
            raise session.error(
                "lists of different kinds are put into a list whose length is only known while the Program runs",
                hint="Let all hold items of one kind.", code="D2S251")
        return found

    def holds(self, value: Any) -> bool:
        """Whether a list is that of the arrays."""
        return self.held is value

    def row_item(self, session: Session) -> structure.Structure:
        """The structure of what rows hold."""
        item = self._content(session).item
        assert is_a(item, Array)
        return item.item

    def load(self, session: Session, number: Any) -> Growing:
        """What a row holds now."""
        grown, row = self._content(session), session.operand(number)
        variables: list[Variable] = []
        for var in grown.variables:
            session.require_visible(var, "a list")
            assert is_a(var.type, ArrayType)
            variables += session.emit("array.load", [var, row], types=[var.type.element])
        return Growing(tuple(variables), self.row_item(session), grown.alias_set)

    def store(self, session: Session, number: Any, items: Sequence[Any]) -> None:
        """Let a row hold other items."""
        grown, operands = self._lowered(session, self._content(session), items)
        row = session.operand(number)
        stored: list[Variable] = []
        for var, operand in zip(grown.variables, operands):
            session.require_visible(var, "a list")
            stored += session.emit("array.store", [var, row, operand], types=[var.type])
        self._put(session, Growing(tuple(stored), grown.item, grown.alias_set))

    def add(self, session: Session, items: Sequence[Any]) -> Any:
        """A new row; its number."""
        if not self.held:
            inner = self._inner(session, items)
            row = flattening.lower(session, list(items), Array(inner, self.alias_set), PLAIN)
            types = [ArrayType(type_) for type_ in structure.types_of(session, Array(inner, self.alias_set))]
            made = [session.emit("array.new", [[one]], types=[type_])[0] for one, type_ in zip(row, types)]
            self._put(session, Growing(tuple(made), Array(inner, self.alias_set), self.alias_set))
            return 0
        number = array.length(session, self.held)
        grown, operands = self._lowered(session, self._content(session), items)
        longer: list[Variable] = []
        for var, operand in zip(grown.variables, operands):
            session.require_visible(var, "a list")
            longer += session.emit("array.append", [var, operand], types=[var.type])
        self._put(session, Growing(tuple(longer), grown.item, grown.alias_set))
        return number

    def reference(self, session: Session, value: Any) -> Operand:
        """The number of the row that a list is.

        Raises:
            TraceError: D2S226, it is none: the caller's, or one that is handed on where it cannot move.
        """
        row = list_row(value)
        if row is None or row.heap is not self:
            shared_items.hold_holders(session, value)
            raise session.error(
                "a list is in a list whose length is only known while the Program runs, lists inside of which are "
                "changed, and is the caller's own or comes there in a way that has no place in it",
                hint="Put a new list in (rows.append(list(row))), or put another one in its place instead of changing "
                "it (rows[i] = rows[i] + [x]).", code="D2S226")
        return session.operand(row.number)

    def made(self, session: Session, kind: type, number: Any) -> Any:
        """Another name for a row: a list, or what one holds."""
        return kind((structure.Row(self, number),))

    def _inner(self, session: Session, items: Sequence[Any]) -> structure.Structure:
        """The structure that carries each of a row's items."""
        grown = structure.growing(items)
        if grown is not None:
            return grown.item
        found: structure.Structure = _NOTHING
        for item in items:
            one = unification.item_structure(session, item, PLAIN)
            found = unification.as_items(unification.unify(session, found, one, PLAIN))
        return found

    def _lowered(self, session: Session, grown: Growing, items: Sequence[Any]) -> tuple[Growing, list[Operand]]:
        """The heap's arrays in a structure that carries a row of some items, too, and the operands that carry it."""
        row = Array(self._inner(session, items), self.alias_set)
        item = grown.item
        if not unification.fits(session, row, item, PLAIN):
            item = unification.unify(session, item, row, PLAIN)
            grown = columns.with_items(session, grown, item, PLAIN)
        return grown, flattening.lower(session, list(items), item, PLAIN)

    def _put(self, session: Session, grown: Growing) -> None:
        session.journal.note(Place("content", self.held), joined=True)
        self.held[:] = [grown]


def heap_for(session: Session, value: list[Any]) -> Heap:
    """The heap that a list's row is in, or would be: one for each kind of items."""
    row = list_row(value)
    if row is not None:
        return row.heap
    return _heap(session, _kind_of(session, value))


def _heap(session: Session, kind: Any) -> Heap:
    found = session.containers.heaps.setdefault(kind, Heap())
    assert is_a(found, Heap)
    return found


def _kind_of(session: Session, value: Any) -> Any:
    """What the items of a list are, roughly; None if it has none."""
    grown = value if is_a(value, Growing) else None
    items = list.__iter__(value) if grown is None else iter(())
    first = next(items, None) if grown is None else grown
    if first is None:
        return None
    item = first.item if is_a(first, Growing) else unification.item_structure(session, first, PLAIN)
    if is_a(item, structure.Known):
        return type(item.value)
    if is_a(item, structure.Number):
        return {"int": int, "float": float, "bool": bool, "str": str}[item.kind]
    if is_a(item, structure.Tensor):
        return item.dtype, item.device, len(item.shape)
    return type(item)


def _heap_in(item: structure.Structure | None) -> Heap | None:
    """The heap of lists among the items of a list that grows."""
    if is_a(item, Reference):
        return item.heap if is_a(item.heap, Heap) else None
    parts: tuple[Any, ...] = ()
    if is_a(item, Options):
        parts = item.options
    elif is_a(item, (structure.Sequence, structure.Fields)):
        parts = item.items
    return next((found for part in parts if (found := _heap_in(part)) is not None), None)


def _movable(session: Session, value: Any) -> Iterator[Any]:
    """The lists, dicts and objects in an item that are to be held by reference."""
    if is_a(value, Choice):
        for option in value.options:
            yield from _movable(session, option)
    elif session.holds_by_reference(type(value)):
        yield value
    elif is_a(value, (tuple, ListContent)) or type(value) is list:
        for item in value:
            yield from _movable(session, item)
    elif is_a(value, structure.DictContent):
        for item in value.values():
            yield from _movable(session, item)
    elif type(value) is dict or (objects.is_record(value) and structure.can_be_copied(session, value)):
        fields = structure.field_items(value)
        for item in fields[1] if fields is not None else ():
            yield from _movable(session, item)


def move_inside(session: Session, items: Iterable[Any], like: structure.Structure | None = None) -> bool:
    """Move the lists among some items, which come into a list that grows, into a heap; whether there were any.

    ``like``: the structure of the items that are there.
    """
    if not session.call.known.by_reference:
        return False
    found = [one for item in items if not is_a(item, Growing) for one in _movable(session, item)]
    lists = [one for one in found if type(one) is list]
    waiting = [one for one in lists if list_row(one) is None]
    heap = _heap_in(like) or next((row.heap for one in lists for row in _rows_of(one)), None)
    if heap is None:
        filled = next((one for one in waiting if one), None)
        heap = _heap(session, None if filled is None else _kind_of(session, filled))
    moved = [_move(session, one, heap, ()) for one in waiting]
    moved += [tables.move(session, one) for one in found if type(one) is not list and row_of(one) is None]
    return any(moved)


def _rows_of(value: list[Any]) -> Iterator[structure.Row]:
    """The row that a list is; where its content is one of several, those that it is on some paths."""
    choice = containers.several(value)
    for one in (value,) if choice is None else choice.options:
        if (row := list_row(one)) is not None:
            yield row


def _move(session: Session, value: list[Any], heap: Heap, around: tuple[int, ...]) -> bool:
    """Let a heap hold what a list does; whether it could be moved."""
    if row_of(value) is not None:
        return False
    if id(value) in session.objects.externals or id(value) in session.containers.hidden or held.is_held(session, value):
        return False
    if id(value) in around:
        raise session.error(
            "a list that holds itself is put into a list whose length is only known while the Program runs",
            hint="Put what it holds in.", code="D2S251")
    choice = containers.several(value)
    if choice is not None:
        if any(row.heap is not heap for row in _rows_of(value)):  # others know that row by its number
            raise session.error(
                "a list that holds different kinds of things on different paths is put into a list whose length is "
                "only known while the Program runs, or used like one",
                hint="Let it hold items of one kind.", code="D2S251")

        def added(hidden: Any) -> Any:
            row = list_row(hidden)
            return row.number if row is not None and row.heap is heap else _added(session, hidden, heap, around)

        runs = [lambda hidden=hidden: added(hidden) for hidden in choice.options]
        number = staging.switch(session, choice.selector, runs)
    else:
        number = _added(session, value, heap, around)
    session.containers.has_rows = True
    session.journal.note(Place("content", value), joined=True)
    value[:] = [structure.Row(heap, number)]
    return True


def _added(session: Session, value: list[Any], heap: Heap, around: tuple[int, ...]) -> Any:
    """The number of a new row that holds what a list does."""
    grown = structure.growing(value)
    if grown is not None:
        return heap.add(session, [grown.read()])
    inside = [one for item in value for one in _movable(session, item) if row_of(one) is None]
    lists = [one for one in inside if type(one) is list]
    if lists:
        filled = next((one for one in lists if one), None)
        inner = _heap(session, None if filled is None else _kind_of(session, filled))
        for one in lists:
            _move(session, one, inner, (*around, id(value)))
    for one in inside:
        if type(one) is not list and row_of(one) is None:
            tables.move(session, one)
    return heap.add(session, value)


def settle(session: Session, values: Iterable[Any]) -> bool:
    """Move the lists inside of lists that are about to become lists that grow; whether there were any."""
    if not session.call.known.by_reference:
        return False
    moved, seen = False, set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if is_a(value, Choice):
            todo += value.options
        elif is_a(value, (tuple, ListContent)) or structure.is_container(value):
            if id(value) in seen or row_of(value) is not None or held.is_held(session, value):
                continue
            seen.add(id(value))
            direct = is_a(value, (tuple, ListContent))
            items = list(value) if direct else [item for _, item in containers.items_of(value)]
            if is_a(value, (list, deque)):
                items = items or list(structure.stored(value))  # some of which may have grown
                like = next((item.item for item in items if is_a(item, Growing)), None)
                moved = move_inside(session, [item for item in items if is_there(session, item)], like) or moved
                if like is not None and len(items) > 1:
                    structure.growing(value)  # joins them, here where lists may move
            todo += items
    return moved


def is_there(session: Session, value: Any) -> bool:
    """Whether what an item holds is known where the trace stands: that of an iteration traced in vain is not."""
    if is_a(value, Growing):
        return all(map(session.visible, value.arrays))
    row = row_of(value)
    if row is not None:  # what it holds is not loaded for the question
        return is_there(session, row.number)
    choice = value if is_a(value, Choice) else containers.several(value)
    if choice is not None:
        return is_there(session, choice.selector) and all(is_there(session, option) for option in choice.options)
    if is_a(value, Staged):
        return session.visible(value.var)
    if is_a(value, torch.Tensor):
        return not torch_internals.is_fake(value) or session.visible(session.info(value).storage.value)
    if type(value) in (list, dict):
        return all(is_there(session, item) for item in (value if type(value) is list else value.values()))
    return True


def identical(session: Session, a: Any, b: Any) -> Any:
    """``a is b`` where one is held by reference; None where neither is."""
    if type(a) is not type(b) or not session.holds_by_reference(type(a)):
        return None
    for one, other in ((a, b), (b, a)):
        if row_of(one) is not None and row_of(other) is None and (choice := containers.several(other)) is not None:
            runs = [lambda one=one, hidden=hidden: _same_row(one, hidden) for hidden in choice.options]
            return staging.switch(session, choice.selector, runs)  # it may have moved on some paths
    first, second = row_of(a), row_of(b)
    if first is None and second is None:
        return None
    return a is b if first is None or second is None else _same_row(a, b)


def _same_row(a: Any, b: Any) -> Any:
    """Whether two names stand for one row."""
    first, second = row_of(a), row_of(b)
    if first is None or second is None or first.heap is not second.heap:
        return False
    return first.number == second.number


def _holder(session: Session, value: Any) -> Heap | tables.Table | None:
    return heap_for(session, value) if type(value) is list else tables.table_for(session, value)


held.register(_holder, move_inside)

__all__ = ["Heap", "heap_for", "identical", "move_inside", "settle"]
