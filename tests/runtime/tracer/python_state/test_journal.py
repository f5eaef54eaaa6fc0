"""What a frame of the journal puts back, and what it says was stored: for every kind of place."""

from __future__ import annotations

import contextvars
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from runtime.tracer.python_state.journal import MISSING, Place, Undefined, cell_value, set_cell
from runtime.tracer.recording.session import Session


class Slotted:
    __slots__ = ("value",)


class Plain:
    pass


class Guarded:
    """Its own methods refuse what the journal does: they are not asked again."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AssertionError("asked")

    def __delattr__(self, name: str) -> None:
        raise AssertionError("asked")


class Rows(list[Any]):
    def extend(self, items: Any) -> None:
        raise AssertionError("asked")


def a_cell() -> types.CellType:
    return types.CellType()


def a_slot() -> Any:
    return Slotted()


VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("variable")
ONES: dict[str, Callable[[], Place]] = {
    "attribute": lambda: Place("attribute", Plain(), "value"),
    "slot": lambda: Place("attribute", a_slot(), "value"),
    "attribute of a class": lambda: Place("attribute", type("Own", (), {}), "value"),
    "attribute of a function": lambda: Place("attribute", lambda: None, "value"),
    "attribute behind a method": lambda: Place("attribute", Guarded(), "value"),
    "attribute of a module": lambda: Place("attribute", nn.Module(), "value"),
    "variable of a closure": lambda: Place("attribute", a_cell(), "cell_contents"),
    "global": lambda: Place("global", {"__name__": "own"}, "value"),
    "context variable": lambda: Place("context", VARIABLE),
}
"""Places of one value, which hold nothing at first."""
WHOLE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list": (lambda: [1, 2], lambda held: held.append(3)),
    "list of a user's class": (lambda: Rows([1, 2]), lambda held: held.insert(0, 3)),
    "dict": (lambda: {"a": 1, "b": 2}, lambda held: held.pop("a")),
    "ordered": (lambda: OrderedDict(a=1, b=2), lambda held: held.move_to_end("a")),
    "set": (lambda: {1, 2}, lambda held: held.add(3)),
    "deque": (lambda: deque([1, 2], maxlen=2), lambda held: held.append(3)),
}
"""Containers, and a change of each."""


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A place whose owner somebody else refers to as well."""
    made = ONES[request.param]()
    owner = made.owner
    yield made
    made.set(MISSING) if made.get() is not MISSING else None
    del owner


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """Context variables as they were."""
    before = VARIABLE.get(MISSING)
    yield
    assert VARIABLE.get(MISSING) is before


@pytest.mark.parametrize("place", ONES, indirect=True)
def test_what_was_set_is_taken_back(place: Place, session: Session) -> None:
    value = object()
    session.journal.open()
    session.journal.note(place)
    place.set(value)
    assert place.get() is value
    after = session.journal.close()
    assert after == {place: value}
    assert place.get() is MISSING or isinstance(place.get(), Undefined)


@pytest.mark.parametrize("place", ONES, indirect=True)
def test_what_was_deleted_is_there_again(place: Place, session: Session) -> None:
    value = object()
    place.set(value)
    session.journal.open()
    session.journal.note(place)
    place.set(MISSING)
    after = session.journal.close()
    (left,) = after.values()
    assert left is MISSING or isinstance(left, Undefined)
    assert place.get() is value


@pytest.mark.parametrize("place", ONES, indirect=True)
def test_the_first_of_several_stores_is_taken_back_to(place: Place, session: Session) -> None:
    before, first, last = object(), object(), object()
    place.set(before)
    session.journal.open()
    for value in (first, last):
        session.journal.note(place)
        place.set(value)
    assert session.journal.close()[place] is last and place.get() is before


@pytest.mark.parametrize("place", ONES, indirect=True)
def test_frames_in_each_other(place: Place, session: Session) -> None:
    """The inner one puts back what the outer one stored; the outer one, what was there before."""
    before, outer, inner = object(), object(), object()
    place.set(before)
    session.journal.open()
    session.journal.note(place)
    place.set(outer)
    session.journal.open()
    session.journal.note(place)
    place.set(inner)
    assert session.journal.close()[place] is inner and place.get() is outer
    assert session.journal.close()[place] is outer and place.get() is before


@pytest.mark.parametrize("name", WHOLE)
def test_contents(name: str, session: Session) -> None:
    make, change = WHOLE[name]
    held, expected, left = make(), make(), make()
    change(left)
    session.journal.open()
    session.journal.note_content(held)
    change(held)
    (after,) = session.journal.close().values()
    kind = set if isinstance(held, set) else dict if isinstance(held, dict) else list
    assert type(held) is type(expected) and kind(held) == kind(expected), "as it was, in its order"
    assert kind(after) == kind(left)
    if isinstance(held, dict):
        assert list(held) == list(expected) and list(after) == list(left)


def test_what_nobody_refers_to_any_more_is_left_out(session: Session) -> None:
    """It was made in the frame and dropped: nobody can see what it holds."""
    session.journal.open()
    place = Place("attribute", Plain(), "value")
    session.journal.note(place)
    place.set(1)
    assert session.journal.close() == {}


def test_a_place_is_its_owner_and_name() -> None:
    one, other = Plain(), Plain()
    assert Place("attribute", one, "a") == Place("attribute", one, "a") != Place("attribute", one, "b")
    assert Place("attribute", one, "a") != Place("attribute", other, "a")
    equal, as_equal = [1], [1]
    assert Place("content", equal) != Place("content", as_equal)
    assert len({Place("content", equal), Place("content", equal), Place("item", equal, 0)}) == 2


def test_how_places_are_called() -> None:
    assert Place("attribute", torch.nn.Linear(1, 1), "note").describe() == "attribute 'note' of a Linear"
    assert Place("global", {}, "count").describe() == "global 'count'"
    assert Place("item", {"a": 1}, "a").describe() == "item 'a' of a dict"
    assert Place("content", [1]).describe() == "a list"
    assert Place("context", VARIABLE).describe() == "the context variable variable"


def test_a_store_that_fails_leaves_what_was_there(session: Session) -> None:
    """A property without a setter: nothing was stored, and nothing is put back."""

    class Fixed:
        @property
        def value(self) -> int:
            return 1

    owner = Fixed()
    session.journal.open()
    session.journal.note_attribute(owner, "value")
    with pytest.raises(AttributeError):
        owner.value = 2  # type: ignore[misc]
    session.journal.close()
    assert owner.value == 1 and vars(owner) == {}


def test_variables_of_closures() -> None:
    cell = types.CellType()
    assert isinstance(cell_value(cell, "n"), Undefined) and repr(cell_value(cell, "n")) == "<unbound n>"
    assert cell_value(cell, "n") is cell_value(cell, "n")
    set_cell(cell, 3)
    assert cell_value(cell) == 3
    set_cell(cell, MISSING)
    assert isinstance(cell_value(cell, "n"), Undefined)
