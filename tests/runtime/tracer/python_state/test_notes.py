"""References that only the tracer has do not count when it is asked who else refers to an object."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.tracer.python_state import notes
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording.attempt import Attempt
from runtime.tracer.recording.session import Session


class Owner:
    held: Any


def own(session: Session, value: Any, *frames: dict[Place, Any]) -> int:
    return notes.own_references(session, [id(value)], *frames)[id(value)]


@pytest.mark.parametrize("make", [list, dict, set, Owner, lambda: [1]])
def test_nobody_else_refers_to_a_new_object(make: Any) -> None:
    value = make()
    assert notes.others(value) == 0
    more = value
    assert notes.others(value) == 1
    held = [value, (value,)]
    assert notes.others(value) == 3
    del more, held
    assert notes.others(value) == 0


def test_notes_count_while_the_construct_is_traced(session: Session) -> None:
    value, other = [1], [2]
    with notes.noted(session, lambda: [value, other, value]):
        assert own(session, value) == 2 and own(session, other) == 1 and own(session, []) == 0
        with notes.noted(session, lambda: (value,)):
            assert own(session, value) == 3
        assert own(session, value) == 2
    assert own(session, value) == 0 and session.constructs.notes == []


def test_a_note_goes_with_an_error(session: Session) -> None:
    with pytest.raises(ValueError):
        with notes.noted(session, lambda: []):
            raise ValueError
    assert session.constructs.notes == []


def test_only_what_is_wanted_is_counted(session: Session) -> None:
    value, other = [1], [2]
    with notes.noted(session, lambda: [value, other]):
        assert notes.own_references(session, [id(value)]) == {id(value): 1}
        assert notes.own_references(session, []) == {}


def test_what_the_journal_keeps(session: Session) -> None:
    """The owner of each place, and what is to come back."""
    owner, before, after = Owner(), [1], [2]
    owner.held = before
    session.journal.write(Place("attribute", owner, "held"), after)
    assert (own(session, owner), own(session, before), own(session, after)) == (1, 1, 0)
    session.journal.open()
    session.journal.write(Place("attribute", owner, "held"), 3)
    assert (own(session, before), own(session, after)) == (1, 1)
    frame = session.journal.close()
    assert own(session, after) == 0 and own(session, owner) == 1
    assert own(session, owner, frame) == 2, "a place of its own"


def test_what_a_container_held(session: Session) -> None:
    inner, value = [1], [0]
    value[0] = inner  # type: ignore[call-overload]
    session.journal.note_content(value)
    value.clear()
    assert own(session, inner) == 1 and own(session, value) == 1
    known = {"k": inner}
    session.journal.note_content(known)
    assert own(session, inner) == 2


def test_what_a_closed_frame_still_keeps(session: Session) -> None:
    owner = Owner()
    place = Place("attribute", owner, "held")
    assert own(session, owner) == 0 and own(session, owner, {place: 1}) == 1


def test_a_place_that_is_noted_is_of_its_owner(session: Session) -> None:
    owner = Owner()
    with notes.noted(session, lambda: [Place("attribute", owner, "held"), owner]):
        assert own(session, owner) == 2


def test_what_is_known_to_be_made_here(session: Session) -> None:
    value = Owner()
    session.objects.created[id(value)] = value
    assert own(session, value) == 1


def test_pictures_of_what_was_there(session: Session) -> None:
    one, other, third = [1], [2], [3]
    session.constructs.pictures.append([(one, [other, other]), (third, {"k": other}), (other, None)])
    assert (own(session, one), own(session, other), own(session, third)) == (1, 4, 1)
    session.constructs.pictures.pop()
    assert own(session, other) == 0


def test_references_of_an_attempt(session: Session) -> None:
    value = [1]
    session.containers.held_owners[id(value)] = value
    before = own(session, value)
    with Attempt(session) as tried:
        assert own(session, value) == before + tried.references[id(value)]
    assert own(session, value) == before


def test_all_references_are_accounted_for(session: Session) -> None:
    """What is left when the tracer's own are taken away is what the test itself has."""
    value = [1]
    mine = notes.others(value)
    session.journal.note_content(value)
    session.objects.created[id(value)] = value
    with notes.noted(session, lambda: kept):
        kept = [value, value]
        assert notes.others(value) - own(session, value) == mine
