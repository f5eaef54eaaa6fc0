"""Containers of which a list that grows holds a copy may not be changed: the trace begins again, or it is refused."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.python_state import shared_items
from runtime.tracer.recording.session import Session


@dataclasses.dataclass
class Record:
    value: int = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: int = 1


class Named(list):  # type: ignore[type-arg]
    pass


MADE: dict[str, tuple[Callable[[], Any], str | None]] = {
    "a list": (lambda: [1], "builtins.list"), "a dict": (lambda: {"k": 1}, "builtins.dict"),
    "a record": (Record, f"{__name__}.Record"), "a set": (lambda: {1}, None), "a deque": (deque, None),
    "of a class": (Named, None), "frozen": (Frozen, None),
}  # fmt: skip


@pytest.mark.parametrize("kind", MADE)
def test_what_no_list_holds_may_be_changed(kind: str, session: Session) -> None:
    value, other = MADE[kind][0](), MADE[kind][0]()
    shared_items.hold(session, other)
    shared_items.require_own(session, value)


@pytest.mark.parametrize("kind", MADE)
def test_a_change_of_what_a_list_holds(kind: str, session: Session, refused: Any) -> None:
    make, name = MADE[kind]
    value = make()
    shared_items.hold(session, value)
    assert session.containers.held_owners[id(value)] is value, "its identity means it as long as the trace lasts"
    if name is not None:
        with pytest.raises(Restart) as found:
            shared_items.require_own(session, value)
        assert found.value.known == Findings(by_reference=frozenset({name}))
        session.call.known = found.value.known
    with refused("D2S226", "shared_items.require_own(session, value)", said=f"a {type(value).__name__} "):
        shared_items.require_own(session, value)


@pytest.mark.parametrize("kind", ["a set", "a list", "a record"])
def test_what_is_said(kind: str, session: Session) -> None:
    value = MADE[kind][0]()
    shared_items.hold(session, value)
    session.call.advanced = True  # it cannot begin again
    with pytest.raises(Exception) as found:
        shared_items.require_own(session, value, "sorted")
    text, where = str(found.value), session.containers.held_in_lists[id(value)]
    assert f"(at {where})" in text and "test_shared_items.py" in text
    assert ("is sorted of which a list" in text) == (kind != "a record")
    assert ("dataclasses.replace" in text) == (kind == "a record")


def test_what_stands_for_any_of_some(session: Session) -> None:
    held, free, made, other = [1], [2], [3], [4]
    shared_items.hold(session, held)
    shared_items.note_same(session, [free], other)
    shared_items.note_same(session, [], other)
    shared_items.require_own(session, other)
    shared_items.note_same(session, [free, held], made)
    with pytest.raises(Restart):
        shared_items.require_own(session, made)


def test_where_it_was_put_into_the_list_last(session: Session) -> None:
    value = {1}
    places = []
    for _ in range(2):
        shared_items.hold(session, value)
        places.append(session.containers.held_in_lists[id(value)])
    shared_items.hold(session, value)
    last = session.containers.held_in_lists[id(value)]
    assert places[0] == places[1] != last and last is not None and last.line == places[0].line + 2
