"""What goes into lists that grow, and comes out: its memory is in the list's item alias set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from runtime.tracer.values import alias_set_items, array, heaps
from runtime.tracer.values.alias_sets import AliasSet, may_be_one
from runtime.tracer.values.structure import Choice
from tests.runtime.tracer.control.staging import Local, Staging
from tests.runtime.tracer.values.growing import by_reference


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Record:
    value: Any


HOLDERS: dict[str, Callable[[Staging, Any], Any]] = {
    "itself": lambda staging, one: one,
    "a tuple": lambda staging, one: (1, one),
    "a list": lambda staging, one: [one],
    "a dict": lambda staging, one: {"a": one},
    "a named tuple": lambda staging, one: Pair(one, 1),
    "a record": lambda staging, one: Record(one),
    "nested": lambda staging, one: [({"a": Record([one])},)],
    "one of several": lambda staging, one: Choice(staging.number(staging.given("i")), (None, (one,))),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_tensor_that_is_put_in_may_be_what_comes_out(kind: str, staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    y, other = x * 2, x * 3
    alias_set = AliasSet()
    alias_set_items.put(session, alias_set, HOLDERS[kind](staging, y))
    item = x * 4
    assert session.origins.known(item) is None
    alias_set_items.got(session, alias_set, (item,))
    memory = {name: session.info(one).storage for name, one in (("y", y), ("other", other), ("item", item))}
    assert may_be_one(memory["y"], memory["item"]) and may_be_one(memory["item"], memory["y"])
    assert not may_be_one(memory["other"], memory["item"]) and not may_be_one(memory["y"], memory["other"])
    assert [known for known, _ in memory["y"].alias_sets] == [alias_set] and not memory["other"].alias_sets
    origin = session.origins.known(item)
    assert origin is not None and origin.number == 0, "which one it is nobody says"
    (found,) = memory["y"].alias_sets
    assert found[1] is not None and found[1].file == __file__, "where it was put in"


def test_once_is_enough(staging: Staging) -> None:
    y = staging.given("x") * 2
    alias_set, other = AliasSet(), AliasSet()
    for one in (alias_set, alias_set, other):
        alias_set_items.put(staging.session, one, y)
    assert [known for known, _ in staging.session.info(y).storage.alias_sets] == [alias_set, other]
    merged = alias_set.merge(other)
    alias_set_items.put(staging.session, merged, y)
    assert len(staging.session.info(y).storage.alias_sets) == 2


def test_a_view_has_the_memory_of_its_base(staging: Staging) -> None:
    y = staging.given("x") * 2
    alias_set = AliasSet()
    alias_set_items.put(staging.session, alias_set, y[1:])
    assert [known for known, _ in staging.session.info(y).storage.alias_sets] == [alias_set]


def test_all_memory_that_a_tensor_may_be(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a, b, other = x * 2, x * 3, x * 4
    v = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: b)
    alias_set = AliasSet()
    alias_set_items.put(session, alias_set, v)
    for one in (v, a, b):
        assert [known for known, _ in session.info(one).storage.alias_sets] == [alias_set]
    assert not session.info(other).storage.alias_sets


def test_a_list_in_a_list_has_its_set(staging: Staging) -> None:
    x = staging.given("x")
    inner = array.of_items(staging.session, [x * 2])
    alias_set = AliasSet()
    alias_set_items.put(staging.session, alias_set, (inner, 1))
    assert alias_set.find() is inner[0].alias_set.find()


def test_containers_that_are_copied_may_not_change(staging: Staging) -> None:
    session = staging.session
    inner, table, record, pair = [1], {"a": 1}, Record(1), (2,)
    owned = {"b": 1}
    session.objects.externals[id(owned)] = owned, None
    alias_set_items.put(session, AliasSet(), (inner, {"t": table}, record, pair, owned))
    held = session.containers.held_in_lists
    assert all(id(one) in held for one in (inner, table, record)) and id(pair) not in held and id(owned) not in held
    came_out, other = [5], Record(6)
    alias_set_items.got(session, AliasSet(), (came_out, other))
    assert id(came_out) in held and id(other) in held
    by_reference(session, list)
    kept, also, without = [7], {"c": 1}, [8]
    heaps.move_inside(session, [kept])
    alias_set_items.put(session, AliasSet(), (kept, also, without))
    assert id(kept) not in held and id(also) in held and id(without) in held, "one is a row, two are copied"


def test_an_object_that_is_twice_in_an_item(staging: Staging) -> None:
    """Which copies of it are one a caller could tell."""
    one = [1]
    alias_set_items.put(staging.session, AliasSet(), (one, 2), ([], 0))
    assert staging.session.containers.copied.often == set()
    other = {"a": 1}
    alias_set_items.put(staging.session, AliasSet(), (other, other), ([], 0))
    assert staging.session.containers.copied.often == {dict}
    assert torch.is_grad_enabled()
