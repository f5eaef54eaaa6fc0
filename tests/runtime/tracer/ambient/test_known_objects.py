"""The objects that a trace knows: its own, and put back where an attempt fails but for what never changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.ambient.known_objects import KnownObjects
from runtime.tracer.ambient.session_parts import DEEP, ITEMS, KEPT, states
from runtime.tracer.recording.session import Session

HOW = {
    "externals": ITEMS, "given": KEPT, "originals": KEPT, "copies": KEPT, "created": ITEMS, "kept": ITEMS,
    "cached": ITEMS, "generators": ITEMS, "numbers": ITEMS, "constructing": ITEMS, "hung": DEEP,
}  # fmt: skip


def put(objects: KnownObjects, name: str) -> None:
    held = getattr(objects, name)
    held.add(1) if isinstance(held, set) else held.update({1: ("a", None)})


def test_every_field_says_how_it_is_put_back() -> None:
    assert dict(states(KnownObjects())) == HOW


@pytest.mark.parametrize("name", HOW)
def test_each_trace_has_its_own(name: str) -> None:
    one, other = KnownObjects(), KnownObjects()
    put(one, name)
    assert len(getattr(one, name)) == 1 and len(getattr(other, name)) == 0 and one != other


@pytest.mark.parametrize("name", [name for name, how in HOW.items() if how == ITEMS])
def test_a_failed_attempt_puts_it_back(name: str, session: Session, undone: Any) -> None:
    held = getattr(session.objects, name)
    before: Any = held.copy()
    with undone():
        put(session.objects, name)
        assert held != before
    assert getattr(session.objects, name) is held and held == before


def test_names_that_an_attempt_hung_are_put_back(session: Session, undone: Any) -> None:
    tensor = torch.ones(1)
    session.objects.hung[id(tensor)] = tensor, {"a"}
    with undone():
        session.objects.hung[id(tensor)][1].add("b")
        session.objects.hung[2] = tensor, {"c"}
    assert session.objects.hung == {id(tensor): (tensor, {"a"})}
