"""Whether Python objects hold values of the trace: in which ways, and how deep."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.python_state.held import Held, RowField, RowKey
from runtime.tracer.values import array
from runtime.tracer.values.holding import holds_traced, is_filled, leads_to_traced
from runtime.tracer.values.structure import Choice
from runtime.tracer.values.tables import Table
from tests.runtime.tracer.control.staging import Staging


class Thing:
    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


class Users(list[Any]):
    pass


def closure(value: Any) -> Any:
    def function() -> Any:
        return value

    return function


def default(value: Any) -> Any:
    def function(one: Any = value) -> Any:
        return one

    return function


def keyword(value: Any) -> Any:
    def function(*, one: Any = value) -> Any:
        return one

    return function


def generator(value: Any) -> Any:
    yield value


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda one: one,
    "a list": lambda one: [1, one],
    "a tuple": lambda one: (one,),
    "a deque": lambda one: deque([one]),
    "a dict": lambda one: {"a": one},
    "a list of a user's class": lambda one: Users([one]),
    "a closure": closure,
    "a default": default,
    "a default by name": keyword,
    "a partial": lambda one: functools.partial(len, one),
    "a partial with a name": lambda one: functools.partial(len, a=one),
    "a generator": generator,
    "an object": Thing,
    "an object with slots": Slotted,
    "a record": Frozen,
    "a method of a list": lambda one: [one].append,
    "a method of an object": lambda one: Thing(one).__init__,
    "in an attribute of an attribute": lambda one: Thing(Thing([Frozen(one)])),
}
OUTSIDE = torch.ones(2)


def values_of_the_trace(staging: Staging) -> list[Any]:
    x, i = staging.given("x i")
    n = staging.number(i)
    row = Held(Table(dict, ("a",)), 0)
    return [x, x * 2, n, n * 0.5, Choice(n, (1, 2)), array.of_items(staging.session, [x]), x[x > 0].shape[0],
            RowField(row, "a"), {"k": RowField(row, "a")}]  # fmt: skip


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_value_that_is_held(kind: str, staging: Staging) -> None:
    hold = HOLDERS[kind]
    for one in values_of_the_trace(staging):
        assert holds_traced(hold(one))
    for other in (1, "a", None, OUTSIDE, object, [], torch.float32, len):
        assert not holds_traced(hold(other))


@pytest.mark.parametrize("kind", list(HOLDERS)[:10])
def test_a_value_that_is_come_by(kind: str, staging: Staging) -> None:
    hold = HOLDERS[kind]
    for one in values_of_the_trace(staging):
        assert leads_to_traced(hold(one)) and leads_to_traced(hold([[one]]))
    for other in (1, "a", None, OUTSIDE, [], torch.float32):
        assert not leads_to_traced([hold(other)])


def test_a_value_that_an_object_leads_to(staging: Staging) -> None:
    assert leads_to_traced(Thing([[staging.given("x")]]))


@pytest.mark.xfail(strict=True, reason="an object of a class of C's is not looked into")
def test_a_value_in_a_namespace(staging: Staging) -> None:
    assert holds_traced(types.SimpleNamespace(a=staging.given("x")))


def test_stand_ins_in_places_of_their_own(staging: Staging) -> None:
    n = staging.number(staging.given("i"))
    assert holds_traced([n])
    row = RowKey(Held(Table(dict, ("a",)), 0))
    assert holds_traced(row) and holds_traced([row])


def test_how_deep_it_is_looked(staging: Staging) -> None:
    x = staging.given("x")
    value: Any = x
    for depth in range(1, 10):
        value = [value]
        assert holds_traced(value) is (depth <= 7)
        assert holds_traced(value, 3) is (depth <= 4)
        assert leads_to_traced(value)


def test_where_nothing_is_looked_for(staging: Staging) -> None:
    x = staging.given("x")
    module = torch.nn.Module()
    vars(module)["held"] = x
    assert not holds_traced(module), "its parts are known otherwise"
    cls = type("Held", (), {"held": x})
    assert not holds_traced(cls) and not holds_traced(types)


def test_circles_end(staging: Staging) -> None:
    itself: list[Any] = []
    itself.append(itself)
    one = Thing(None)
    one.value = (one, itself)
    assert not holds_traced(itself) and not holds_traced(one) and not leads_to_traced(itself)
    itself.append(staging.given("x"))
    assert holds_traced(one) and leads_to_traced(itself)


def test_what_only_c_knows_is_come_by(staging: Staging) -> None:
    x = staging.given("x")
    for value in (zip([x]), iter([[x]]), map(len, [x]), types.MappingProxyType({"a": x}), slice(x), {"a": x}.get):
        assert leads_to_traced(value)
    assert not leads_to_traced(zip([OUTSIDE])) and not leads_to_traced({"a": 1}.get)


SHARED: dict[str, Any] = {}  # what another trace has left in the globals


@pytest.mark.parametrize("made", [lambda: None, type("Made", (), {"method": lambda self: None})])
def test_the_globals_of_a_function_are_not_its_own(staging: Staging, made: Any) -> None:
    SHARED["kept"] = staging.given("x")
    try:
        assert not leads_to_traced(made)
    finally:
        SHARED.clear()


def test_a_generator_that_has_ended(staging: Staging) -> None:
    ended = generator(staging.given("x"))
    list(ended)
    assert not holds_traced(ended)


def test_cells() -> None:
    assert is_filled(types.CellType(1)) and is_filled(types.CellType(False))
    assert not is_filled(types.CellType(None)) and not is_filled(types.CellType())
