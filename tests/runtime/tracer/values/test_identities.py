"""The numbers of objects: they say which object it is, and are no numbers otherwise."""

from __future__ import annotations

import copy
import math
import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.ambient import state
from runtime.tracer.values import identities
from runtime.tracer.values.identities import Identity, noted, varies
from tests.runtime.tracer.control.staging import Staging


class Thing:
    pass


OLD, OUTSIDE = Thing(), torch.ones(2)
AS_NUMBERS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda one, act=getattr(operator, name): act(one, 2) for name in (
        "add", "sub", "mul", "mod", "floordiv", "truediv", "pow", "and_", "or_", "xor", "lshift", "rshift", "lt", "le",
        "gt", "ge")},
    **{f"the other way round {name}": lambda one, act=getattr(operator, name): act(2, one) for name in (
        "add", "sub", "mul", "mod", "floordiv", "truediv", "pow", "and_", "or_", "xor", "lshift", "rshift", "lt")},
    **{name: getattr(operator, name) for name in ("neg", "pos", "abs", "invert")},
    "divmod": lambda one: divmod(one, 2), "divided": lambda one: divmod(2, one), "round": round, "float": float,
    "int": int, "str": str, "repr": repr, "format": lambda one: f"{one}", "as hex": lambda one: f"{one:x}",
    "a root": math.sqrt, "the larger one": lambda one: max(one, 3), "sorted": lambda one: sorted([one, 2]),
    "a sum": lambda one: sum([one]), "inside a text": lambda one: str([one]), "leaving": lambda one: one.leave(),
}  # fmt: skip


@pytest.mark.parametrize("how", AS_NUMBERS)
def test_a_look_at_the_number_is_refused(how: str, staging: Staging) -> None:
    with pytest.raises(TraceError) as found:
        AS_NUMBERS[how](Identity(7))
    assert found.value.code == "D2S264" and found.value.location is not None


PAST_ITS_METHODS: dict[str, Callable[[Any], Any]] = {
    **{name: operator.attrgetter(name) for name in ("real", "numerator")},
    **{name: operator.methodcaller(name) for name in ("bit_length", "conjugate", "as_integer_ratio")},
    "to_bytes": lambda one: one.to_bytes(8, "big"), "index": operator.index, "hex": hex, "range": range,
    "a text": lambda one: "%d" % one,
}  # fmt: skip


@pytest.mark.parametrize("how", PAST_ITS_METHODS)
def test_a_look_past_its_methods_is_refused(how: str, staging: Staging) -> None:
    with pytest.raises(TraceError):
        PAST_ITS_METHODS[how](Identity(7))


def test_which_object_it_is_may_be_asked(staging: Staging) -> None:
    one, again, other = Identity(7), Identity(7), Identity(8)
    assert one == again and one != other and hash(one) == hash(again)
    staging.session.objects.numbers |= {7, 8}  # what id() gave for objects of before
    assert one == 7 and not one == 8 and not one == "a"
    assert {one: "a"}[again] == "a" and other not in {one} and len({one, again, other}) == 2 and one in [other, again]


def test_it_is_an_int_to_who_asks(staging: Staging) -> None:
    one: Any = Identity(7)
    assert isinstance(one, int) and bool(one) and copy.copy(one) is one and copy.deepcopy({one: [one]}) == {one: [one]}


@pytest.mark.parametrize("look", [
    lambda one: one == 5, lambda one: 5.0 != one, lambda one: one in [3, 5], lambda one: (one, 1) == (5, 1),
])  # fmt: skip
def test_a_number_from_elsewhere_may_be_the_next_calls(look: Callable[[Any], Any], staging: Staging) -> None:
    with pytest.raises(TraceError, match="D2S264"):
        look(Identity(7))


def test_keys_from_elsewhere(staging: Staging) -> None:
    """A dict finds a number by its hash: it would ask nothing."""
    session, one = staging.session, Identity(7)
    for keys in ([5], {5}, {5: 1}.keys(), [3, 5.0]):
        with pytest.raises(TraceError, match="D2S264"):
            identities.require_known(session, [one], keys)
    with pytest.raises(TraceError, match="D2S264"):
        identities.require_known(session, [(one, (1, one))], [(one, (1, 5))])
    session.objects.numbers.add(5)
    identities.require_known(session, [one], [5, "a", None, one, Identity(8), (5, 1)])
    identities.require_known(session, [(one, 1)], [(one, 2), (6, 1, 1), 6, "a"][:2])
    identities.require_known_in_both(session, {one: 1}, {5: 1})
    for pair in (({one}, {6}), ({6: 1}, {one: 1}), ({6: 1}.keys(), {one}), ({6}, [one])):
        with pytest.raises(TraceError, match="D2S264"):
            identities.require_known_in_both(session, *pair)
    identities.require_none(session, [1, "a", [2, (3,)]])
    with pytest.raises(TraceError, match="D2S264"):
        identities.require_none(session, [1, [(one,)]])


def test_outside_of_a_trace_its_text_is_the_numbers() -> None:
    assert state.active() is None and repr(Identity(7)) == "7"


def test_of_what_each_call_has_another_one(staging: Staging) -> None:
    x = staging.given("x")
    made = staging.new(Thing())
    for value in (x, x * 2, made, [], {}, set(), deque(), (x,), (1, (made,)), frozenset({made}), ([],)):
        assert varies(staging.session, value)
        assert type(noted(staging.session, value, 7)) is Identity
    for other in (1, "a", None, 1.5, torch.float32, OUTSIDE, len, int, Thing, (), (1, "a"), frozenset({1}),
                  (OUTSIDE,), math):  # fmt: skip
        assert not varies(staging.session, other)
        assert type(noted(staging.session, other, 7)) is int


def test_an_object_from_before_is_the_same_in_each_call(staging: Staging) -> None:
    session, held = staging.session, [1]
    session.objects.externals[id(OLD)] = OLD, None
    session.objects.externals[id(held)] = held, None
    assert not varies(session, OLD) and not varies(session, held) and not varies(session, (OLD, held))
    session.objects.externals[id(held)] = held, ("xs",)
    assert varies(session, held) and varies(session, (OLD, held)), "each call is given another one"
