"""Numbers that change from call to call: which may be inputs, where they are, and what becomes of them in a trace."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy
import pytest
import torch

from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state import facts
from runtime.tracer.python_state.facts import Fact
from runtime.tracer.python_state.journal import MISSING, Place
from runtime.tracer.recording.session import Session
from tests.oracle import same
from tests.runtime.tracer.control.staging import Staging


class Owner:
    held: Any


class Number(int):
    pass


VALUES: list[tuple[Any, type | None]] = [
    (0, int), (-3, int), (2**63 - 1, int), (-(2**63), int), (2**63, None), (-(2**63) - 1, None), (0.5, float),
    (-0.0, float), (float("nan"), float), (float("inf"), float), (1e308, float), (True, None), (None, None),
    ("1", None), (1j, None), (Number(1), None), (numpy.int64(1), None), (numpy.float64(1), None), ([1], None),
    (torch.tensor(1), None), (MISSING, None),
]  # fmt: skip


@pytest.mark.parametrize("value, kind", VALUES, ids=lambda one: type(one).__name__)
def test_which_values_a_program_takes_in(value: Any, kind: type | None) -> None:
    assert facts.can_be_fact(value) is (kind is not None)
    for one in (int, float, bool, str):
        assert facts.can_be_fact(value, one) is (kind is one)


@pytest.mark.parametrize("value", [value for value, kind in VALUES if kind is not None], ids=str)
def test_a_number_goes_in_and_comes_out_as_it_was(value: Any) -> None:
    with torch.device("meta"):
        tensor = facts.number_tensor(value)
    assert tensor.shape == () and str(tensor.device) == "cpu"
    same(tensor.item(), value, bits=True)
    assert tensor.dtype == (torch.int64 if type(value) is int else torch.float64)


def test_a_fact_reads_what_is_there_now() -> None:
    owner = Owner()
    owner.held = 3
    fact = Fact(Place("attribute", owner, "held"), int)
    assert fact.holds() and fact.tensor().item() == 3
    owner.held = -7
    assert fact.holds() and fact.tensor().item() == -7
    for other in (0.5, True, 2**70, None, torch.tensor(1)):
        owner.held = other
        assert not fact.holds()
    del owner.held
    assert not fact.holds()


# -- numbers inside of containers


def found(value: Any) -> list[tuple[Any, Any]]:
    return [(place.name, number) for place, number in facts.numbers_inside(value)]


CONTAINERS: list[tuple[Any, list[tuple[Any, Any]]]] = [
    ([], []), ({}, []), ((), []), ([1, 2.5, True, "a", None], [(0, 1), (1, 2.5)]),
    ({"a": 1, 2: 0.5}, [("a", 1), (2, 0.5)]),
    ((1, 2), []), ((1, [2]), [(0, 2)]), ([[1], {"k": 2}, (3, [4])], [(0, 1), ("k", 2), (0, 4)]), ([1, 2**70], [(0, 1)]),
    (3, []), ("ab", []), ({1, 2}, []), (OrderedDict(a=1), []), ([Number(1), numpy.int64(1)], []), (None, []),
    ([1] * 256, [(place, 1) for place in range(256)]), ([1] * 257, []), ([0, [1] * 257], [(0, 0)]),
    ([[[[5]]]], [(0, 5)]), ([[[[[6]]]]], [(0, 6)]), ([[[[[[7]]]]]], []),
]  # fmt: skip


@pytest.mark.parametrize("value, expected", CONTAINERS, ids=lambda one: repr(one)[:30])
def test_where_plain_numbers_are(value: Any, expected: list[tuple[Any, Any]]) -> None:
    assert found(value) == expected
    assert all(place.kind == "item" and place.owner[place.name] is one for place, one in facts.numbers_inside(value))


def test_each_container_is_looked_into_once() -> None:
    inner: list[Any] = [1]
    inner.append(inner)
    assert found([inner, inner, {"k": inner}]) == [(0, 1)]


# -- in a trace


def number(session: Session, value: Any, name: str = "held") -> tuple[Owner, Place, Any]:
    """An attribute that is to be a fact, staged."""
    owner = Owner()
    owner.held = value
    place = Place("attribute", owner, "held")
    session.call.varying |= {place}
    assert facts.stage(session, place, value)
    return owner, place, owner.held


@pytest.mark.parametrize("value", [3, -0.5])
def test_a_number_is_staged_for_the_trace(value: Any, session: Session) -> None:
    owner, place, staged = number(session, value)
    assert isinstance(staged, Staged) and staged.python_type is type(value)
    fact, same_one = session.call.facts[place]
    assert fact == Fact(place, type(value)) and same_one is staged
    assert session.journal.frames[0] == {place: value}, "which comes back at its end"
    [one] = session.program.inputs
    assert one.name == "attribute 'held' of a Owner" and session.inputs.real(one.var).item() == value  # type: ignore[union-attr]
    run = Staging(session).finish(staged)
    for other in (type(value)(7), value):
        assert run(**{one.name: facts.number_tensor(other)}) == other
    (guard,) = session.guards.freeze()
    for other, holds in ((value, True), (type(value)(9), True), ("a", False), (True, False)):
        owner.held = other
        assert guard.holds() is holds


def test_it_is_taken_out_of_its_input_where_the_program_begins(session: Session) -> None:
    with session.open("cond"):
        _, _, staged = number(session, 3)
    assert session.visible(staged.var) and [op.name for op in session.program.block.ops] == ["scalar.item"]


def test_what_is_no_fact_stays_as_it_is(session: Session) -> None:
    owner = Owner()
    place, other = Place("attribute", owner, "held"), Place("attribute", owner, "other")
    session.call.varying = frozenset({place})
    for value, where in ((True, place), ("a", place), (2**70, place), (3, other)):
        owner.held = value
        assert not facts.stage(session, where, value) and owner.held is value
    assert session.program.inputs == [] and session.call.facts == {} and not session.guards.copy()


def test_numbers_in_a_list_or_dict(session: Session) -> None:
    rows, known = [1, 2.5, "a"], {"lr": 0.1, "n": 3}
    session.call.varying = frozenset({
        Place("item", rows, 1), Place("item", rows, 2), Place("item", rows, 9), Place("item", known, "lr"),
        Place("content", rows),
    })  # fmt: skip
    facts.stage_items(session, rows)
    facts.stage_items(session, known)
    facts.stage_items(session, (1, 2))
    assert [isinstance(one, Staged) for one in rows] == [False, True, False]
    assert [isinstance(one, Staged) for one in known.values()] == [True, False]
    assert facts.holds_facts(session, rows) and facts.holds_facts(session, ([known],))
    owner = Owner()
    owner.held = rows
    session.guards.add("held", "held", lambda: owner.held, rows)
    held = session.guards.freeze()[-1]
    rows[1] = 7.5
    assert held.holds(), "each call reads it"
    owner.held = list(rows)
    assert not held.holds(), "another list would have another number"


def test_what_holds_the_number_of_a_fact(session: Session, given: Any) -> None:
    assert not facts.holds_facts(session, [1, [2]])
    _, _, staged = number(session, 3)
    other = session.from_tensor("item", given("i", dtype=torch.int64), kind="int")
    for value in (staged, [staged], {"k": (1, staged)}, [[{1: staged}]]):
        assert facts.holds_facts(session, value)
    for value in (other, [other], 3, None, {staged_key: 1 for staged_key in "a"}, {1, 2}, OrderedDict()):
        assert not facts.holds_facts(session, value)


@pytest.mark.parametrize("value", [0, 3, 0.0, -0.0, 0.5, float("nan")])
def test_whether_a_fact_is_zero_is_guarded(value: Any, session: Session, given: Any) -> None:
    owner, place, staged = number(session, value)
    assert facts.is_zero(session, staged) is (value == 0)
    kind, zero = session.guards.freeze()
    for other in (0, -0.0, 2, 0.5, float("nan")):
        owner.held = other
        assert zero.holds() is ((other == 0) is (value == 0))
    owner.held = value
    assert kind.holds() and facts.is_zero(session, staged) is (value == 0) and len(session.guards.freeze()) == 2


def test_only_of_facts_it_is_asked_whether_they_are_zero(session: Session, given: Any) -> None:
    number(session, 0)
    other = session.from_tensor("item", given("i", dtype=torch.int64), kind="int")
    for value in (other, 0, None, torch.tensor(0)):
        assert facts.is_zero(session, value) is None
    assert len(session.guards.freeze()) == 1


def test_zero_or_not_decides_while_tracing(session: Session) -> None:
    """As ``if momentum != 0`` asks."""
    _, _, staged = number(session, 0.5)
    assert (session.scalar("ne", staged, 0), session.scalar("eq", 0, staged)) == (True, False)
    assert session.scalar("bool", staged) is True and isinstance(session.scalar("ne", staged, 1), Staged)


def test_an_input_for_a_number(session: Session) -> None:
    staged = facts.number_input(session, 2, "n")
    run = Staging(session).finish((staged, staged))
    same(run(n=torch.tensor(5)), (5, 5))
