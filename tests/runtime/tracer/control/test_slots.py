"""What a loop may carry: one slot for each variable, what a place holds, and how an error calls them."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import TraceError
from runtime.ir import Location
from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.control import slots
from runtime.tracer.control.loop_objects import Cell
from runtime.tracer.control.slots import Slot, first_slots, held, moved_lists, same_items, store
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values.structure import (
    Array,
    DictContent,
    Known,
    ListContent,
    Number,
    Options,
    Reference,
    Sequence,
    Tensor,
)
from tests.runtime.tracer.control.staging import Local, Staging


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_each_variable_has_a_slot(staging: Staging) -> None:
    x = staging.given("x")
    rows = [x]
    found = first_slots(staging.session, Local(y=x, n=1, word="a", rows=rows, nothing=None), {})
    assert [slot.label for slot in found] == ["y", "n", "word", "rows", "nothing"]
    assert all(isinstance(slot.carried, Known) and slot.carried.value is slot.init for slot in found)
    assert found[0].init is x and found[3].init is rows
    assert all(slot.place is None and slot.cell is None for slot in found)


def test_a_variable_whose_sizes_may_change(staging: Staging) -> None:
    """It is carried from the start, with the sizes that are left open."""
    x, m = staging.given("x m")
    local = Local(y=x, z=m)
    one, other = first_slots(staging.session, local, {"z": (None, 3)})
    assert isinstance(one.carried, Known) and isinstance(other.carried, Tensor)
    assert other.carried.shape[1] == 3 and other.carried.shape[0] != 2


def test_how_a_slot_is_called() -> None:
    known, box = Known(1), Box(1)
    assert Slot("y", 1, known).describe() == "'y'"
    assert Slot("value", 1, known, Place("attribute", box, "value")).describe() == "attribute 'value' of a Box"
    assert Slot("", 1, known, Place("content", [1])).describe() == "a list"
    cell = Cell(Box, ("value",), None, frozenset(), False)
    assert Slot("", None, known, cell=cell).describe() == "what a Box made in the loop holds"


SAME: list[tuple[Any, Any, bool]] = [
    ([1, "a"], [1, "a"], True),
    ([1], [1, 2], False),
    ([1], [True], False),
    ([1], [1.0], False),
    ([0.0], [-0.0], False),
    ([None], [0], False),
    ([[1]], [[1]], False),
    ({"a": 1, "b": 2}, {"a": 1, "b": 2}, True),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
    ({"a": 1}, {"a": 2}, False),
    ({}, {"a": 2}, False),
    (frozenset({1}), frozenset({1}), True),
    (frozenset({1}), frozenset({2}), False),
    ([], {}, False),
    (None, None, False),
]


@pytest.mark.parametrize(("one", "other", "same"), SAME, ids=repr)
def test_whether_a_content_is_the_same(one: Any, other: Any, same: bool) -> None:
    """Containers inside are the same if they are the same object: what they hold is told of themselves."""
    assert same_items(one, other) is same and same_items(other, one) is same


def test_a_tensor_in_a_content_is_the_same_object(staging: Staging) -> None:
    x = staging.given("x")
    inner = [x]
    assert same_items([x, inner], [x, inner]) and not same_items([x], [x + 0]) and not same_items([inner], [[x]])


def test_what_a_place_holds(staging: Staging) -> None:
    x = staging.given("x")
    box, rows, table = Box(x), [1, x], {"a": x}
    assert held(Place("attribute", box, "value")) is x
    found, other = held(Place("content", rows)), held(Place("content", table))
    assert type(found) is ListContent and list(found) == rows and found is not rows
    assert type(other) is DictContent and dict(other) == table and other is not table
    assert held(Place("content", {1})) == frozenset({1})


def test_stores(staging: Staging) -> None:
    box, rows = Box(1), [1]
    session = staging.session
    session.journal.open()
    store(session, None, 5)
    store(session, Place("attribute", box, "value"), None)
    store(session, Place("content", rows), ListContent([2, 3]))
    assert box.value is None and rows == [2, 3] and type(rows) is list
    session.journal.close()
    assert box.value == 1 and rows == [1], "the journal knows of them"


@pytest.mark.parametrize("init", [[1], [[1]], []], ids=repr)
def test_lists_that_come_to_grow_begin_with_what_they_held(init: list[Any], staging: Staging) -> None:
    """What they hold may come out of them: the alias set knows it."""
    x = staging.given("x")
    init = [x, *init]
    array = Array(Number("int"))
    assert moved_lists(staging.session, [Slot("rows", init, array), Slot("n", 1, Number("int"))]) is False
    assert [one for one, _ in staging.session.info(x).storage.alias_sets] == [array.alias_set]


def test_other_lists_are_in_no_alias_set(staging: Staging) -> None:
    x = staging.given("x")
    slots_ = [Slot("rows", [x], Sequence(list, (Number("int"),))), Slot("n", [x], Known([x]))]
    assert moved_lists(staging.session, slots_) is False and staging.session.info(x).storage.alias_sets == []


def test_which_structures_have_arrays_and_rows() -> None:
    array, number, row = Array(Number("int")), Number("int"), Reference(None)  # type: ignore[arg-type]
    inside = [Sequence(tuple, (number, array)), Options((number, Sequence(list, (array,))))]
    assert all(map(slots._holds_arrays, (array, *inside)))
    assert not any(map(slots._holds_arrays, (number, row, Options((number, Known(None))), Known([1]))))
    assert all(map(slots._has_rows, (row, Sequence(tuple, (row,)), Options((number, row)))))
    assert not any(map(slots._has_rows, (number, array, Known(None))))
    assert slots._is_row(Options((number, row))) and not slots._is_row(Sequence(tuple, (row,)))


@pytest.mark.parametrize("count", [1, 2])
def test_the_error_for_what_never_stays(count: int, staging: Staging) -> None:
    place = Location("f.py", 3)
    changing = [Slot("y", 1, Number("int")), Slot("value", 1, Known("a"), Place("attribute", Box(1), "value"))][:count]
    error = slots.never_fixed(staging.session, changing, place)
    assert isinstance(error, TraceError) and error.code == "D2S250" and error.location is place
    text = str(error)
    assert ("'y' never reaches a fixed structure" in text) == (count == 1)
    assert ("'y' and attribute 'value' of a Box never reach a fixed structure" in text) == (count == 2)
    assert f"after {slots.TRIES} iterations" in text and "Give it its final kind before the loop" in text


def test_the_error_where_nothing_is_known_to_change(staging: Staging) -> None:
    text = str(slots.never_fixed(staging.session, [], None))
    assert "what this loop changes never reach" in text and "it still changes" in text


def test_objects_that_never_stay_are_held_by_reference_first(staging: Staging) -> None:
    """The trace begins again: lists that grow hold such objects by reference then."""
    cell = Cell(Box, ("value",), None, frozenset(), False)
    with pytest.raises(Restart) as caught:
        slots.never_fixed(staging.session, [Slot("", None, Number("int"), cell=cell)], None)
    assert any("Box" in name for name in caught.value.known.by_reference)
    staging.session.call.known = Findings(by_reference=caught.value.known.by_reference)
    error = slots.never_fixed(staging.session, [Slot("", None, Number("int"), cell=cell)], None)
    assert "what a Box made in the loop holds never reaches" in str(error)
