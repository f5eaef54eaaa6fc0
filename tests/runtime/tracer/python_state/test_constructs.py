"""The constructs that a trace is in: regions of ``recompute()`` are counted where they are in no other."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.tracer.ambient.session_parts import DEEP, ITEMS, KEPT, VALUE, states
from runtime.tracer.python_state.constructs import Constructs
from runtime.tracer.recording.session import Session


def test_regions_inside_each_other_are_one() -> None:
    constructs = Constructs()
    seen = []
    for step in ("enter", "enter", "leave", "leave", "enter", "leave"):
        constructs.enter_region() if step == "enter" else constructs.leave_region()
        seen.append((constructs.checkpoints, constructs.regions))
    assert seen == [(1, 1), (2, 1), (1, 1), (0, 1), (1, 2), (0, 2)]


def test_operators_have_the_number_of_their_region(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    for inside in (False, True, False, True):
        if inside:
            session.constructs.enter_region()
        made(lambda: x * 2)
        if inside:
            session.constructs.leave_region()
    assert [op.attrs.get("checkpoint") for op in session.program.block.ops] == [None, 1, None, 2]


def test_each_trace_has_its_own() -> None:
    one, other = Constructs(), Constructs()
    assert one != other and one.paths == 1
    for name, how in states(one):
        assert getattr(one, name) is not getattr(other, name) or how == VALUE


@pytest.mark.parametrize("name, how", [
    ("touched", DEEP), ("pictures", ITEMS), ("notes", ITEMS), ("paths", VALUE), ("checkpoints", VALUE),
    ("regions", VALUE), ("attempts", KEPT),
])  # fmt: skip
def test_how_a_failed_attempt_puts_it_back(name: str, how: str, session: Session, undone: Any) -> None:
    constructs = session.constructs
    assert dict(states(constructs))[name] == how and len(dict(states(constructs))) == 7
    held = getattr(constructs, name)
    before = list(held) if isinstance(held, list) else held
    with undone() as tried:
        if isinstance(held, list):
            assert name != "attempts" or held == [tried]
            held.append("more") if name != "attempts" else None
        else:
            setattr(constructs, name, 7)
    assert getattr(constructs, name) is held
    assert (list(held) if isinstance(held, list) else held) == before


def test_what_a_loop_touched_is_put_back_as_well(session: Session, undone: Any, given: Any) -> None:
    storage = session.info(given("x", 3)).storage
    session.constructs.touched.append(set())
    with undone() as tried:
        session.constructs.touched[0].add(storage)
    assert session.constructs.touched == [set()]
