"""Dicts and objects that lists which grow hold by reference: a row of a table for each, a column for each key."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.python_state.held import Held, RowField, RowKey, held_in
from runtime.tracer.values import array, tables
from runtime.tracer.values.containers import put
from runtime.tracer.values.structure import Choice, DictContent, Fields, row_of
from runtime.tracer.values.tables import RowChoice, Table, table_for
from tests.runtime.tracer.control.staging import Local, Plain, Staging
from tests.runtime.tracer.values.growing import act, agree_on_counts, by_reference, items_up_to


class Node:
    def __init__(self, value: Any, next: Any = None) -> None:
        self.value, self.next = value, next


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclasses.dataclass
class Record:
    value: Any
    count: int = 0


SOME = [{"x": [1.0, -2.0, 3.0], "i": number} for number in (1, 2, 3)]


def look(do: Plain, table: Any, function: Callable[[Any], Any]) -> Any:
    """What a function does with a dict."""
    row = held_in(table) if isinstance(do, Staging) else None
    return function(table) if row is None else RowChoice(do.session, row).run(do.session, function)  # type: ignore[attr-defined]


def get(do: Plain, owner: Any, name: str) -> Any:
    """An attribute."""
    held = getattr(owner, name)
    return held.read() if type(held) is RowField else held


def store(do: Plain, owner: Any, name: str, value: Any) -> None:
    """Store to an attribute."""
    held = getattr(owner, name)
    if type(held) is RowField:
        held.row.heap.set(do.session, held.row.number, name, value)  # type: ignore[attr-defined]
    else:
        setattr(owner, name, value)


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "store": lambda one, x: one.__setitem__("t", x + 7),
    "store of a number": lambda one, x: one.__setitem__("k", 7),
    "update": lambda one, x: one.update(t=x, k=9),
    "a count": lambda one, x: one.__setitem__("k", one["k"] + 1),
    "get": lambda one, x: (one["t"], one.get("k"), one.get("m", 5), "t" in one, len(one)),
    "items": lambda one, x: list(one.items()),
    "a store of another kind": lambda one, x: one.__setitem__("k", None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_names_of_a_dict_see_a_change(change: str, staging: Staging) -> None:
    by_reference(staging.session, dict)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        first, second = {"t": x, "k": 1}, {"t": x * 2, "k": 2}
        xs = items_up_to(do, [first, second, first], n)
        found = look(do, act(do, "get", xs, n - 1), lambda one: CHANGES[change](one, x))
        look(do, second, lambda one: CHANGES[change](one, x))
        return found, first, second, xs

    agree_on_counts(staging, told, *SOME)


@pytest.mark.parametrize("cls", [Node, Slotted, Record])
def test_all_names_of_an_object_see_a_change(cls: Any, staging: Staging) -> None:
    by_reference(staging.session, cls)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        first, second = do.new(cls(x)), do.new(cls(x * 2))
        xs = items_up_to(do, [first, second, first], n)
        store(do, act(do, "get", xs, n - 1), "value", x * 3)
        found = get(do, first, "value"), get(do, second, "value")
        store(do, second, "value", x * 5)
        return found, first, second, xs

    agree_on_counts(staging, told, *SOME)


def test_objects_that_refer_to_each_other(staging: Staging) -> None:
    by_reference(staging.session, Node)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        a = do.new(Node(x))
        b = do.new(Node(x * 2, a))
        a.next = b
        xs = items_up_to(do, [a], 1)
        store(do, get(do, get(do, a, "next"), "next"), "value", x * 3)
        return get(do, a, "value"), get(do, b, "value"), act(do, "length", xs)

    agree_on_counts(staging, told, *SOME[:1])


def test_objects_move_where_a_branch_begins(staging: Staging) -> None:
    by_reference(staging.session, Node)
    session = staging.session
    one, other = staging.new(Node(1)), Node(2)
    tables.settle_objects(session)
    assert row_of(one) is not None and row_of(other) is None, "nobody says that the trace made it"
    constructed = staging.new(Node(3))
    session.objects.constructing.add(id(constructed))
    tables.settle_objects(session)
    assert row_of(constructed) is None, "its __init__ has not ended"


def test_without_references_nothing_moves(staging: Staging) -> None:
    one = staging.new(Node(1))
    tables.settle_objects(staging.session)
    assert row_of(one) is None and tables.unbound(staging.session, one) is one


def test_rows_of_a_table(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    table = Table(dict, ("t", "k"))
    assert table.keys == ("t", "k") and table.held == [] and not table.holds([])
    with pytest.raises(TraceError) as found:
        table.get(session, 0, "t")
    assert found.value.code == "D2S251"
    assert table.add(session, {"t": x, "k": 1}) == 0
    second = table.add(session, {"k": "a", "t": x * 2})
    assert table.holds(table.columns["k"]) and table.held is table.columns["t"]
    table.set(session, 0, "k", 5)
    values = [table.get(session, number, key) for number in (0, second) for key in table.keys]
    run = staging.finish(values)
    found_values = run(x=torch.ones(3))
    assert found_values[1::2] == [5, "a"] and [one.tolist() for one in found_values[::2]] == [[1.0] * 3, [2.0] * 3]


def test_all_columns_are_one_list(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    table = Table(dict, ("t", "k"))
    table.add(session, {"t": x, "k": 1})
    table.add(session, {"t": x * 2, "k": 2})
    whole = table.whole()
    assert isinstance(whole.item, Fields) and whole.item.keys == ("t", "k") and len(whole.variables) == 2
    item = array.item_of(session, whole, [session.emit("array.get", [var, 1])[0] for var in whole.variables])
    run = staging.finish((item["t"], item["k"]))
    assert run(x=torch.ones(3))[1] == 2 and run(x=torch.ones(3))[0].tolist() == [2.0] * 3


def test_names_of_a_row(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    table, other = Table(dict, ("t",)), Table(dict, ("t",))
    assert not session.containers.has_rows
    n = staging.number(x.int().sum())
    made = table.made(session, dict, n)
    (key,) = dict.__iter__(made)
    assert type(key) is RowKey and key.row.heap is table and key.row.number is n and session.containers.has_rows
    content = table.made(session, DictContent, 0)
    assert type(content) is DictContent and table.reference(session, content) == 0
    assert table.reference(session, made) is n.var
    for wrong in ({"t": x}, other.made(session, dict, 0), [1], Node(1)):
        with pytest.raises(TraceError) as found:
            table.reference(session, wrong)
        assert found.value.code == "D2S226"
    nodes = Table(Node, ("value", "next"))
    node = nodes.made(session, Node, 3)
    assert type(node) is Node and id(node) in session.objects.created
    assert [type(one) for one in vars(node).values()] == [RowField] * 2 and nodes.reference(session, node) == 3


def test_python_may_not_read_a_row(staging: Staging) -> None:
    table = Table(Node, ("value",))
    row = Held(table, 0)
    for one in (RowKey(row), RowField(row, "value")):
        for ask in (hash, len, str, bool, lambda held: held + 1, lambda held: held.more):
            with pytest.raises(TraceError) as found:
                ask(one)  # type: ignore[operator]
            assert found.value.code == "D2S253"


def test_a_table_for_each_class_and_keys(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a = table_for(session, {"t": x, "k": 1})
    assert isinstance(a, Table) and a is table_for(session, {"t": 1, "k": x}) and a.cls is dict
    others = [table_for(session, one) for one in ({"k": 1, "t": x}, {"t": x}, staging.new(Node(1)),
                                                  staging.new(Record(1)), staging.new(Slotted(1)))]  # fmt: skip
    assert None not in others and len({id(one) for one in (a, *others)}) == 6
    assert table_for(session, a.made(session, dict, 0)) is a
    for none in ({}, {x: 1}, {(1, 2): 3}, Node(1), 1, [1], (1,), "a"):
        assert table_for(session, none) is None


def test_what_moves_with_a_dict(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    by_reference(session, dict)
    inner, listed, owned = {"t": x}, {"t": x * 2}, {"t": x * 3}
    outer: dict[str, Any] = {"t": inner, "k": [listed, (owned, 1)]}
    session.objects.externals[id(owned)] = owned, None
    assert tables.move(session, outer)
    assert all(row_of(one) is not None for one in (outer, inner, listed)) and row_of(owned) is None
    assert not tables.move(session, outer) and not tables.move(session, owned)
    itself: dict[str, Any] = {"m": 1}
    itself["itself"] = itself
    assert tables.move(session, itself) and row_of(itself) is not None


def test_a_dict_of_which_each_path_has_another_one(staging: Staging) -> None:
    """It is one row afterwards, with what the run's path put in."""
    by_reference(staging.session, dict)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        one: dict[str, Any] = {"t": x, "k": 1}
        if do is staging:
            contents = DictContent(t=x, k=1), DictContent(t=x * 2, k=2)
            chosen = do.session.scalar("int", do.truth(n > 1))
            put(do.session, one, Choice(chosen, contents))
        elif n > 1:
            one.update(t=x * 2, k=2)
        xs = items_up_to(do, [one, {"t": x * 3, "k": 3}], n)
        look(do, act(do, "get", xs, 0), lambda held: held.__setitem__("k", held["k"] + 4))
        return one, xs

    agree_on_counts(staging, told, *SOME[:2])


def test_other_keys_are_refused(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    by_reference(session, dict)
    one = {"t": x, "k": 1}
    tables.move(session, one)
    row = held_in(one)
    assert row is not None
    changes: tuple[Callable[[Any], Any], ...] = (
        lambda held: held.update(m=1), lambda held: held.pop("k"), lambda held: held.clear(),
        lambda held: held.update(t=held.pop("t")))  # fmt: skip
    for change in changes:
        with pytest.raises(TraceError) as found:
            RowChoice(session, row).run(session, change)
        assert found.value.code == "D2S226"


def test_a_store_while_something_goes_over_the_items(staging: Staging) -> None:
    """Items that are read later are those of then."""
    session = staging.session
    by_reference(session, dict)
    one: dict[str, Any] = {"a": 1, "b": 2}
    tables.move(session, one)
    row = held_in(one)
    assert row is not None
    iterator = RowChoice(session, row).run(session, lambda held: iter(held.items()))
    assert next(iterator)[0] == "a" and len(row.heap.open) == 1
    row.heap.set(session, 0, "b", 7)
    key, held = next(iterator)
    assert key == "b" and type(held) is RowField
    assert staging.finish(held.read())() == 7


def test_what_is_read_of_an_object(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    by_reference(session, Node)
    one = staging.new(Node(x, 3))
    tables.move(session, one)
    made = tables.unbound(session, one)
    assert type(made) is Node and made is not one and row_of(made) is None
    for other in (1, x, [1], {"a": 1}, Node(1), None):
        assert tables.unbound(session, other) is other
    run = staging.finish((made.value, made.next))
    assert run(x=torch.ones(3))[0].tolist() == [1.0] * 3 and run(x=torch.ones(3))[1] == 3


def test_a_row_that_one_path_changes(staging: Staging) -> None:
    by_reference(staging.session, dict)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        one: dict[str, Any] = {"t": x, "k": 1}
        xs = items_up_to(do, [one, {"t": x * 2, "k": 2}], 2)

        def path() -> None:
            look(do, act(do, "get", xs, 0), lambda held: held.__setitem__("t", x + 7))
            act(do, "append", xs, {"t": x * 3, "k": 3})

        do.branch(n > 1, Local(), path, lambda: look(do, one, lambda held: held.__setitem__("k", 9)))
        return one, xs

    agree_on_counts(staging, told, *SOME[:2])
