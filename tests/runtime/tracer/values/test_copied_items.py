"""Objects of which lists that grow hold copies: whether copies of one object may leave the call."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from runtime.tracer.ambient.calls import Restart
from runtime.tracer.values import copied_items
from runtime.tracer.values.alias_sets import AliasSet
from runtime.tracer.values.origins import begin_loop
from runtime.tracer.values.structure import Array, Fields, Growing, Known, Number, Options, Sequence, Structure
from tests.runtime.tracer.control.staging import Staging


@dataclasses.dataclass
class Record:
    value: Any


def grown(staging: Staging, item: Structure, alias_set: AliasSet | None = None) -> Growing:
    """A list of items of a structure."""
    staging.session.containers.has_growing = True
    return Growing((), item, alias_set or AliasSet())


ROWS = Sequence(list, (Number("int"),))
RECORDS = Fields(Record, ("value",), (Number("int"),))


def references(staging: Staging) -> frozenset[str]:
    """The classes for which the trace begins again, by name."""
    try:
        copied_items.require_references(staging.session)
    except Restart as restart:
        return restart.known.by_reference
    return frozenset()


def test_an_item_that_leaves_as_it_is_alone(staging: Staging) -> None:
    copied_items.put(staging.session, [1])
    copied_items.leave(staging.session, grown(staging, ROWS))
    assert not references(staging)


def test_an_object_that_is_put_in_twice(staging: Staging) -> None:
    one = [1]
    copied_items.put(staging.session, one)
    assert staging.session.containers.copied.often == set() and id(one) in staging.session.containers.held_in_lists
    copied_items.put(staging.session, one)
    assert staging.session.containers.copied.often == {list} and not references(staging), "nothing leaves"
    copied_items.leave(staging.session, grown(staging, RECORDS))
    assert not references(staging), "others leave"
    copied_items.leave(staging.session, grown(staging, ROWS))
    assert references(staging) == {"builtins.list"}


def test_an_object_that_is_older_than_the_loop(staging: Staging) -> None:
    session, before = staging.session, Record(1)
    loop = begin_loop(session, {id(before)})
    with session.origins.inside(loop):
        copied_items.put(session, Record(2))
        assert session.containers.copied.often == set()
        copied_items.put(session, before)
    assert session.containers.copied.often == {Record}


def test_what_stands_for_what_an_iteration_began_with(staging: Staging) -> None:
    one = [1]
    staging.session.containers.copied.carried[id(one)] = one
    copied_items.put(staging.session, one)
    assert staging.session.containers.copied.often == {list}


def test_a_list_that_comes_to_grow_again(staging: Staging) -> None:
    """The body of a loop is traced several times: an item at one place is entered once."""
    one, other = [1], [2]
    owner: list[Any] = [one, other]
    for _ in range(3):
        copied_items.put(staging.session, one, (owner, 0))
        copied_items.put(staging.session, other, (owner, 1))
    assert staging.session.containers.copied.often == set()
    assert {id(one), id(other)} <= set(staging.session.containers.held_in_lists)
    copied_items.put(staging.session, one, (owner, 1))
    assert staging.session.containers.copied.often == {list}


def test_an_object_that_is_in_an_item_twice(staging: Staging) -> None:
    one = [1]
    owner: list[Any] = [(one, one)]
    copied_items.put(staging.session, one, (owner, 0))
    copied_items.put(staging.session, one, (owner, 0), twice=True)
    assert staging.session.containers.copied.often == {list}


def test_an_object_that_leaves_beside_its_copy(staging: Staging) -> None:
    one, other = Record(1), Record(2)
    copied_items.put(staging.session, one)
    copied_items.leave_alone(staging.session, other)
    assert staging.session.containers.copied.alone == set()
    copied_items.leave_alone(staging.session, one)
    assert staging.session.containers.copied.alone == {Record} and not references(staging)
    copied_items.leave(staging.session, grown(staging, Options((Known(None), RECORDS))))
    assert references(staging) == {f"{Record.__module__}.Record"}


def test_two_lists_with_the_same_items(staging: Staging) -> None:
    first, second = AliasSet(), AliasSet()
    copied_items.leave(staging.session, grown(staging, ROWS, first))
    copied_items.leave(staging.session, grown(staging, ROWS, second))
    assert not references(staging)
    second.merge(first)
    copied_items.leave(staging.session, grown(staging, ROWS, second))
    assert references(staging) == {"builtins.list"}


@pytest.mark.parametrize(("item", "wanted"), [
    (Number("int"), set()), (ROWS, {list}), (RECORDS, {Record}), (Sequence(tuple, (ROWS, RECORDS)), {list, Record}),
    (Array(Number("int")), {list}), (Array(RECORDS, AliasSet(), tuple), {Record}), (Options((Known(1), ROWS)), {list}),
    (Fields(dict, ("a",), (Array(ROWS),)), {dict, list}), (Known([]), set()),
])  # fmt: skip
def test_the_classes_of_items(item: Structure, wanted: set[type], staging: Staging) -> None:
    copied_items.put_again(staging.session, item)
    assert staging.session.containers.copied.often == wanted
    copied_items.leave(staging.session, grown(staging, item))
    assert staging.session.containers.copied.leaving == wanted and len(references(staging)) == len(wanted)
