"""The slots of a loop: what stands for them in the body, what an iteration leaves in them, and how they get wider."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.tracer.control.branches import Path, trace_path
from runtime.tracer.control.loop_values import LoopValues
from runtime.tracer.control.slots import Slot, first_slots, held
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values.structure import Array, Known, Made, Number, Options, Sequence, Tensor
from tests.runtime.tracer.control.staging import Local, Staging


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def attempt(staging: Staging, local: Local, slots: list[Slot], body: Any, *repeated: Place,
            alone: tuple[int, ...] = ()) -> tuple[LoopValues, Path, set[Place]]:  # fmt: skip
    """One trace of a body; the places that it changed and that are no slots."""
    session = staging.session
    values = LoopValues(session, slots, local, set(alone), [body])

    def prepare(scope: Any) -> None:
        scope.block.args.extend(values.arguments(scope))
        values.put(values.inner)

    path = trace_path(session, "while_loop", local, body, prepare)
    assert not path.ended, "what fails in the body is an exception of its path"
    befores = {place: held(place) for place in path.places}
    values.end(path, set(repeated))
    return values, path, values.widen(path, befores, set(repeated), False)


LEFT: dict[str, tuple[Any, Any, Any]] = {
    "the same": (lambda x: x, lambda y: y, Known),
    "another tensor": (lambda x: x, lambda y: y * 2, Tensor),
    "another size": (lambda x: x, lambda y: y[:2] * 2, Tensor),
    "another dtype": (lambda x: x, lambda y: y.int(), Options),
    "another number": (lambda x: 1, lambda y: y + 1, Number),
    "a float for an int": (lambda x: 1, lambda y: 0.5, Options),
    "another bool": (lambda x: True, lambda y: False, Number),
    "another text": (lambda x: "a", lambda y: "b", Options),
    "the same text": (lambda x: "a", lambda y: "a", Known),
    "a number for nothing": (lambda x: None, lambda y: 1, Options),
    "another pair": (lambda x: (x, 1), lambda y: (y[0], 2), Sequence),
    "an equal pair": (lambda x: (1, "a"), lambda y: (1, "a"), Known),
    "a longer tuple": (lambda x: (1,), lambda y: (*y, 1), Options),
}


@pytest.mark.parametrize("kind", LEFT)
def test_a_slot_gets_as_wide_as_what_is_left_in_it(kind: str, staging: Staging) -> None:
    first, step, wanted = LEFT[kind]
    local = Local(y=first(staging.given("x")), still="a")

    def body() -> None:
        local.y = step(local.y)

    slots = first_slots(staging.session, local, {})
    values, path, unknown = attempt(staging, local, slots, body)
    one, other = values.next_slots
    assert isinstance(one.carried, wanted) and isinstance(other.carried, Known) and unknown == set()
    assert one.init is slots[0].init and local.y is slots[0].init
    assert values.fit is (wanted is Known) and values.changed == ([] if wanted is Known else [one])
    assert values.refitted() == (set() if wanted is Known else {0})
    assert values.outs[0] is path.names[0]


def test_what_is_known_is_itself_in_the_body_and_what_is_carried_has_a_stand_in(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    local = Local(y=x, z=x, n=1)

    def body() -> None:
        assert local.y is not x and local.z is x and isinstance(local.n, Staged)
        assert session.scope.begins[session.read(local.y)] is session.read(x)
        local.y, local.n = local.y * 2, local.n * 2

    first = first_slots(session, local, {})
    values, path, _ = attempt(staging, local, widened(staging, local, first), body)
    assert values.fit, "what it left is what it was taken to carry"
    assert [arg.hint for arg in path.scope.block.args] == ["y", "n"]
    assert values.inits() == [session.read(x), 1]
    assert [label for _, label in values.carried()] == ["y", "n"]
    with path.inside(session):
        assert values.lowered(values.outs) == [session.read(path.names[0]), path.names[2].var]
    pairs = list(values.pairs(values.outs, values.inner))
    assert [(number, one is path.names[0], other is values.inner[0]) for number, one, other in pairs] == [
        ((0, 0), True, True)
    ]  # fmt: skip


def widened(staging: Staging, local: Local, slots: list[Slot]) -> list[Slot]:
    """The slots after an iteration that changes ``y`` and ``n``."""

    def body() -> None:
        local.y, local.n = local.y * 2, local.n * 2

    return attempt(staging, local, slots, body)[0].next_slots


def test_a_place_is_a_slot_if_the_attempt_after_stores_to_it_too(staging: Staging) -> None:
    """An object that an iteration made is another one each time."""
    x = staging.given("x")
    box, rows, table = staging.new(Box(x)), [1], {"a": x}
    places = [Place("attribute", box, "value"), Place("content", rows), Place("content", table)]
    local = Local()

    def body() -> None:
        staging.store(box, "value", box.value * 2)
        staging.change(rows, lambda one: one.__setitem__(0, 2))
        staging.change(table, lambda one: one.update(a=x))
        staging.store(staging.new(Box(1)), "value", x * 3)

    values, _, unknown = attempt(staging, local, [], body)
    assert values.next_slots == [] and set(places[:2]) <= unknown and places[2] not in unknown, "it holds what it did"
    values, _, unknown = attempt(staging, local, [], body, *places[:2])
    assert {slot.place: type(slot.carried) for slot in values.next_slots} == {places[0]: Tensor, places[1]: Sequence}
    assert not values.fit and not set(places) & unknown
    values, _, _ = attempt(staging, local, values.next_slots, body)
    assert values.fit and box.value is x and rows == [1]
    assert [slot.place for slot in values.next_slots] == places[:2]


def test_a_list_to_which_every_iteration_appends(staging: Staging) -> None:
    x = staging.given("x")
    rows: list[Any] = []

    def body() -> None:
        staging.change(rows, lambda one: one.append(x * 2))

    place = Place("content", rows)
    values, _, _ = attempt(staging, Local(), [], body, place)
    (slot,) = values.next_slots
    assert slot.place == place and isinstance(slot.carried, Array) and isinstance(slot.carried.item, Tensor)


def test_an_object_of_the_iteration_gets_a_cell(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(box=None)

    def body() -> None:
        local.box = staging.new(Box(x * 2))

    values, _, unknown = attempt(staging, local, first_slots(staging.session, local, {}), body)
    name, cell = values.next_slots
    assert isinstance(name.carried, Options) and any(isinstance(one, Made) for one in name.carried.options)
    assert cell.cell is not None and cell.cell.cls is Box and cell.init is None and cell.label == ""
    assert isinstance(cell.carried, Sequence) and isinstance(cell.carried.items[0], Tensor) and unknown == set()
    values, _, _ = attempt(staging, local, values.next_slots, body)
    assert values.fit and isinstance(values.inner[1], tuple)


@pytest.mark.parametrize("alone", [True, False])
def test_a_list_made_anew_begins_with_that_of_a_variable_alone(alone: bool, staging: Staging) -> None:
    x = staging.given("x")
    local = Local(rows=[x])

    def body() -> None:
        local.rows = [x * 2]

    slots = first_slots(staging.session, local, {})
    values, _, _ = attempt(staging, local, slots, body, alone=(0,) if alone else ())
    name, cell = values.next_slots
    assert isinstance(name.carried, Made if alone else Options) and cell.cell is not None
    assert (cell.init is not None) is alone


def test_a_path_that_ended_is_alike(staging: Staging) -> None:
    local = Local()

    def body() -> None:
        raise ValueError

    values = LoopValues(staging.session, [], local, set(), [body])
    path = trace_path(staging.session, "while_loop", local, body)
    assert values.are_alike(path, {})


def test_values_are_put_into_variables_and_places(staging: Staging) -> None:
    box, local = staging.new(Box(1)), Local(a=1, b=2)
    place = Place("attribute", box, "value")
    slots = [Slot("a", 1, Known(1)), Slot("b", 2, Known(2)), Slot("value", 1, Known(1), place)]
    staging.session.journal.open()
    LoopValues(staging.session, slots, local, set(), []).put([3, 4, 5])
    assert local.get() == (3, 4) and box.value == 5
    staging.session.journal.close()
    assert box.value == 1


def test_tensors_of_a_state_have_numbers(staging: Staging) -> None:
    """The slot's, and that of the tensor in it."""
    x, y = staging.given("x y")
    local = Local(n=1, pair=(x, y, x))
    session = staging.session

    def body() -> None:
        a, b, _ = local.pair
        made = a * 2
        local.pair = (made, b + 1, made)

    first = first_slots(session, local, {})
    values = attempt(staging, local, first, body)[0]
    values, path, _ = attempt(staging, local, values.next_slots, body)
    numbers = [number for number, _, _ in values.pairs(values.inner, values.inner)]
    assert numbers == [(1, 0), (1, 1), (1, 2)]
