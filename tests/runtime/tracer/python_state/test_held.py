"""Dicts and objects that are rows of a table: found by what stands in them, which itself answers nothing."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from runtime.errors import TraceError
from runtime.tracer.ambient import state
from runtime.tracer.ambient.poison import keys_answer
from runtime.tracer.python_state import held
from runtime.tracer.python_state.held import Held, RowField, RowKey, held_in
from runtime.tracer.recording.session import Session
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.tables import Table


class Node:
    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value", "other")


class Below(Slotted):
    """One whose slots are those of a base."""

    __slots__ = ()


class Rows:
    """A table of dicts, as far as a row asks for it."""

    cls = dict

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def get(self, session: Session, number: Any, key: Any) -> Any:
        self.asked.append((session, number, key))
        return "found"


@pytest.fixture
def row() -> Held:
    return Held(Rows(), 3)  # type: ignore[arg-type]


def with_key(row: Held, kind: type = dict) -> Any:
    with keys_answer():
        made = kind()
        made[RowKey(row)] = None
    return made


def test_a_dict_with_that_key_alone_is_a_row(row: Held) -> None:
    for kind in (dict, OrderedDict, type("Keyed", (dict,), {})):
        value = with_key(row, kind)
        assert held_in(value) is row
        value["more"] = 1
        assert held_in(value) is None
    for other in ({}, {"k": row}, {"k": RowField(row, "k")}, {1: 2}):
        assert held_in(other) is None


def test_an_object_whose_attributes_are_that_is_a_row(row: Held) -> None:
    field = RowField(row, "value")
    assert held_in(Node(field)) is row
    for cls in (Slotted, Below):
        value = cls()
        assert held_in(value) is None
        value.value = value.other = field
        assert held_in(value) is row
    node = Node(1)
    node.other = field  # type: ignore[attr-defined]
    assert held_in(node) is None, "all are, or none is"


def test_a_slot_that_was_never_set(row: Held) -> None:
    value = Slotted()
    value.value = RowField(row, "value")
    assert held_in(value) is row


def test_everything_else_is_none() -> None:
    values: list[Any] = [None, 3, "a", [1], (1,), {1}, object(), Node(1), Slotted(), Node, int, len, Node([])]
    assert [held_in(value) for value in values] == [None] * len(values)


def test_a_row_is_seen_where_its_number_is(session: Session, number: Any) -> None:
    known, staged = Held(Rows(), 3), Held(Rows(), number())  # type: ignore[arg-type]
    assert known.visible(session) and staged.visible(session)
    with session.open("cond"):
        inside = Held(Rows(), session.scalar("add", staged.number, 1))  # type: ignore[arg-type]
        assert inside.visible(session) and staged.visible(session)
    assert not inside.visible(session)


def test_an_attribute_is_read_in_its_row(row: Held, session: Session) -> None:
    assert RowField(row, "value").read() == "found"
    assert row.heap.asked == [(session, 3, "value")]  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [RowKey, lambda row: RowField(row, "k")], ids=["key", "field"])
def test_python_itself_may_ask_nothing(make: Any, row: Held, session: Session) -> None:
    one = make(row)
    for ask in (len, iter, bool, str, hash, lambda it: it + 1, lambda it: it == 1, lambda it: it.attribute):
        with pytest.raises(TraceError, match="a dict in a list whose length is only known") as found:
            ask(one)
        assert found.value.code == "D2S253" and found.value.location is not None
        assert found.value.location.file == __file__


def test_after_the_trace_it_is_leaked(row: Held) -> None:
    assert state.active() is None and repr(RowKey(row)) == RowKey.text
    with pytest.raises(TraceError, match="D2S211"):
        len(RowKey(row))  # type: ignore[arg-type]


def test_keys_are_compared_by_identity_where_the_tracer_asks(row: Held, session: Session) -> None:
    one, other = RowKey(row), RowKey(row)
    with keys_answer():
        assert one == one and one != other and {one: 1}[one] == 1 and other not in {one: 1}


def test_the_error_for_other_keys(session: Session) -> None:
    error = held.keys_change(session)
    assert isinstance(error, TraceError) and error.code == "D2S226" and error.location is not None
    assert "gets another key or attribute, or loses one" in error.summary


# -- what heaps and tables say


def test_what_is_registered_is_asked(session: Session, row: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_holders", "_moves", "_choices"):
        monkeypatch.setattr(held, name, [])
    for answer in ("first", "last"):  # who registers last is asked alone
        held.register(lambda *args, answer=answer: (answer, *args), lambda *args, answer=answer: (answer, *args))  # type: ignore[arg-type, misc]
        held.register_choice(lambda *args, answer=answer: (answer, *args))  # type: ignore[arg-type, misc]
    value: list[Any] = []
    assert held.holder(session, value) == ("last", session, value)
    assert held.move_inside(session, [value]) == ("last", session, [value], None)
    assert held.choice_of(session, row) == ("last", session, row, None)
    assert held.choice_of(session, row, len) == ("last", session, row, len)


def test_what_stands_higher_says_where_values_are_held(session: Session) -> None:
    heap = held.holder(session, [1])
    assert isinstance(heap, Heap) and held.holder(session, [2]) is heap and held.holder(session, 3) is None
    assert held.move_inside(session, [1, 2.5, "a"]) is False


def test_lists_in_which_rows_are_held(session: Session) -> None:
    table, heap = Table(dict, ("a", "b")), Heap()
    rows = [[1], [1]]
    assert not any(held.is_held(session, one) for one in (*table.columns.values(), heap.held, *rows))
    session.containers.heaps.update({"table": table, "heap": heap})
    assert all(held.is_held(session, one) for one in (*table.columns.values(), heap.held))
    assert not any(held.is_held(session, one) for one in (*rows, [], [[]]))
