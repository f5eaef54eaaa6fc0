"""Which tensors are one object in all calls of a function that calls itself, and which only in some."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from runtime.tracer.control.given_tensors import GivenTensors, leaves
from runtime.tracer.values import flattening, same_object, structure
from runtime.tracer.values.origins import Given
from runtime.tracer.values.structure import (
    PLAIN,
    Choice,
    Fields,
    JoinContext,
    Known,
    Number,
    Options,
    Sequence,
    Structure,
)
from runtime.tracer.values.unification import carried, structure_of
from tests.runtime.tracer.control.staging import Staging


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


def carried_by(staging: Staging, value: Any) -> Structure:
    """The structure that carries a value, nothing of it known."""
    return carried(staging.session, structure_of(staging.session, value, JoinContext()), PLAIN)


def test_places_are_those_of_the_variables(staging: Staging) -> None:
    x, y = staging.given("x y")
    number = staging.number(x.int().sum())
    t, n = carried_by(staging, x * 2), Number("int")
    value = (x, number, [y, (number, x)], Pair(y, number), {"a": x})
    inner = Sequence(list, (t, Sequence(tuple, (n, t))))
    s = Sequence(tuple, (t, n, inner, Fields(Pair, ("first", "second"), (t, n)), Fields(dict, ("a",), (t,))))
    found = list(leaves(value, s, 3))
    assert [place for place, _ in found] == [3, 5, 7, 8, 10] and structure.width(s) == 8
    assert all(one is other for (_, one), other in zip(found, (x, y, x, y, x), strict=True))


def test_no_tensors(staging: Staging) -> None:
    x = staging.given("x")
    assert list(leaves(x, Known(x))) == [] and list(leaves(1, Number("int"))) == []


def test_of_one_of_several_nothing_is_told(staging: Staging) -> None:
    """A place that has one of several tensors has no tensor; a tuple that may be None has nothing."""
    x, y = staging.given("x y")
    tensor = carried_by(staging, x * 2)
    choice = Choice(staging.number(x.int().sum()), (x, y))
    assert list(leaves(choice, tensor)) == [(0, choice)]
    assert list(leaves(choice, Options((tensor, tensor)))) == []
    pair = Sequence(tuple, (tensor, tensor))
    assert list(leaves(None, pair)) == [(0, None), (1, None)] == list(leaves(choice, pair))


def test_two_that_are_always_one_have_one_variable(staging: Staging) -> None:
    x, y = staging.given("x y")
    given, session = GivenTensors(staging.session), staging.session
    assert given.include([(0, x), (1, x), (2, y)]) is False, "the first call is what is known"
    assert given.include([(0, y), (1, y), (2, x)]) is False
    a, b, c = (session.new_variable(session.read(x).type) for _ in range(3))
    assert given.variables([a, b, c]) == [a, a, c]


def test_two_that_are_one_in_some_calls_are_told_apart_no_more(staging: Staging) -> None:
    x, y = staging.given("x y")
    given, session = GivenTensors(staging.session), staging.session
    given.include([(0, x), (1, x), (2, y)])
    assert given.include([(0, x), (1, y), (2, y)]) is True
    assert given.include([(0, x), (1, x), (2, x)]) is True, "the first and the third have become one here"
    assert given.include([(0, y), (1, x), (2, x)]) is False, "of none of the pairs anything is known any more"
    variables = [session.new_variable(session.read(x).type) for _ in range(3)]
    assert given.variables(variables) == variables


def test_a_place_without_a_tensor_is_unknown(staging: Staging) -> None:
    x = staging.given("x")
    given, session = GivenTensors(staging.session), staging.session
    assert given.include([(0, x), (1, None)]) is False and given.include([(0, x), (1, x)]) is False
    variables = [session.new_variable(session.read(x).type) for _ in range(2)]
    assert given.variables(variables) == variables


def test_what_is_older_than_the_calls(staging: Staging) -> None:
    """What is always the same older tensor is known; another one, in any call, is news."""
    x, y = staging.given("x y")
    given, since = GivenTensors(staging.session), staging.session.origins.number()
    assert given.include([(0, x)], since) is False
    assert given.include([(0, x)], since) is False
    made = x * 2
    assert given.include([(0, made)], since) is False, "what a call makes is not older"
    assert given.include([(0, y)], since) is True
    assert given.include([(0, y)], since) is False


def test_results_that_are_always_an_older_tensor(staging: Staging) -> None:
    x, y = staging.given("x y")
    session, given = staging.session, GivenTensors(staging.session)
    var = session.new_variable(session.read(x).type)
    other = session.new_variable(session.read(x).type)
    assert given.include_itself([(0, x), (1, y)], [x, y]) is False
    found = given.known([var, other])
    assert set(found) == {var, other} and session.one(x) is found[var] and session.one(y) is found[other]
    assert given.include_itself([(0, x), (1, x)], [x, y]) is True, "the second one is not y in all calls"
    assert list(given.known([var, other])) == [var]
    assert given.include_itself([(0, x), (1, y)], [x, y]) is False, "and never becomes it again"
    assert list(given.known([var, other])) == [var]


def test_results_that_a_call_makes_are_no_older_tensor(staging: Staging) -> None:
    x, y = staging.given("x y")
    session, given = staging.session, GivenTensors(staging.session)
    assert given.include_itself([(0, x * 2), (1, None)], [x, y]) is False
    variables = [session.new_variable(session.read(x).type) for _ in range(2)]
    assert given.known(variables) == {}


def stand_ins(staging: Staging, given: GivenTensors, values: Any, older: bool) -> Any:
    """What stands for the tensors of a call in the trace, as ``given`` tells."""
    session = staging.session
    s = carried_by(staging, tuple(one * 2 for one in values))
    args = [session.new_variable(type_) for type_ in structure.types_of(session, s)]
    made: dict[Any, torch.Tensor] = {}
    inner = flattening.lift(session, s, iter(given.variables(args)), PLAIN, made)
    given.note(list(made.values()), list(leaves(inner, s)), arguments=older)
    return inner


def test_stand_ins_are_one_or_two_or_nobody_knows(staging: Staging) -> None:
    x, y = staging.given("x y")
    session, given = staging.session, GivenTensors(staging.session)
    given.include([(0, x), (1, x), (2, y)])
    a, b, c = stand_ins(staging, given, (x, x, y), True)
    assert a is b and same_object.related(session, a, b) == "same"
    assert same_object.related(session, a, c) == "other"
    given.include([(0, x), (1, x), (2, x)])
    a, b, c = stand_ins(staging, given, (x, x, y), True)
    assert a is b and same_object.related(session, a, c) == "unknown"


def test_stand_ins_know_what_older_tensors_they_may_be(staging: Staging) -> None:
    x, y = staging.given("x y")
    session, given = staging.session, GivenTensors(staging.session)
    given.include([(0, x)], session.origins.number())
    (a,) = stand_ins(staging, given, (x,), True)
    origin = session.origins.known(session.one(a))
    assert isinstance(origin, Given) and origin.older == [session.origins.of(session.one(x))]
    (b,) = stand_ins(staging, GivenTensors(session), (x,), False)
    origin = session.origins.known(session.one(b))
    assert isinstance(origin, Given) and origin.older is None, "of what a call gives, no list says it"
    assert same_object.related(session, a, y) == "other"
