"""What a trace knows of containers, and how an attempt that fails puts it back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from runtime.errors import TraceError
from runtime.tracer.recording.attempt import Attempt
from runtime.tracer.values.known_containers import KnownContainers
from tests.runtime.tracer.control.staging import Staging


def test_nothing_is_known_at_first() -> None:
    known = KnownContainers()
    assert not known.has_contents and not known.has_growing and not known.has_unset and not known.has_rows
    for name in ("hidden", "present", "open_alias_sets", "held_in_lists", "held_owners", "heaps"):
        assert not getattr(known, name) and getattr(known, name) is not getattr(KnownContainers(), name)


def test_containers_that_stand_for_others() -> None:
    hidden, rows = KnownContainers(), KnownContainers()
    hidden.hidden[1] = [], []
    rows.has_rows = True
    assert hidden.has_contents and rows.has_contents
    rows.has_growing = True
    rows.has_rows = False
    assert not rows.has_contents, "what grows is found otherwise"


def test_an_attempt_that_fails_puts_it_back(staging: Staging) -> None:
    session = staging.session
    known = session.containers
    kept: dict[str, Any] = {one.name: getattr(known, one.name) for one in dataclasses.fields(known)}
    owner: list[Any] = []
    known.held_in_lists[1] = None
    with pytest.raises(TraceError), Attempt(session):
        known.hidden[id(owner)] = owner, owner
        known.has_growing = known.has_unset = known.has_rows = True
        known.present.append((session.scope, owner, 0))
        known.held_in_lists[2] = None
        known.held_owners[2] = owner
        known.heaps["kind"] = object()  # type: ignore[assignment]
        known.copied.often.add(list)
        raise session.error("it cannot be", code="D2S210", hint="Do something else.")
    assert not known.has_contents and not known.has_growing and not known.has_unset
    assert known.held_in_lists == {1: None} and not known.present and not known.held_owners and not known.heaps
    assert not known.copied.often
    for name, value in kept.items():
        assert isinstance(value, bool) or getattr(known, name) is value, "the very objects, which others may have"


def test_an_attempt_that_holds_keeps_it(staging: Staging) -> None:
    with Attempt(staging.session):
        staging.session.containers.has_growing = True
        staging.session.containers.held_in_lists[2] = None
    assert staging.session.containers.has_growing and staging.session.containers.held_in_lists == {2: None}
