"""Where values came from: what was noted of them, and what branches and loops say of what they make anew."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest
import torch

from runtime.tracer.values import origins as module
from runtime.tracer.values import structure
from runtime.tracer.values.alias_sets import AliasSet
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.origins import Carried, Itself, Joined, Left, Loop, OneOf, Origin, is_noted
from runtime.tracer.values.structure import Array, Choice, Fields, Known, Made, Number, Options, Reference, Sequence
from tests.runtime.tracer.control.staging import Local, Staging


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


FLOATS = structure.Tensor((2,), None, torch.float32, torch.device("cpu"), False, True)
NOTED: list[structure.Structure] = [
    FLOATS, Sequence(tuple, ()), Sequence(tuple, (Number("int"),)), Fields(Frozen, ("value",), (Number("int"),)),
    Fields(Pair, ("first",), (Known(1),)), Array(Number("int"), AliasSet(), tuple), Sequence(list, (FLOATS,)),
    Fields(dict, ("a",), (FLOATS,)), Options((Number("int"), FLOATS)), Sequence(structure.ListContent, (FLOATS,)),
    Sequence(structure.StagedSize, (Number("int"),)), Options((Known(1), Options((FLOATS,)))),
]  # fmt: skip
NOT_NOTED: list[structure.Structure] = [
    Known((1, 2)), Number("int"), Array(FLOATS), Sequence(list, (Number("int"),)), Fields(dict, ("a",), (Known(1),)),
    Options((Known(1), Number("int"))), Options(()), Made("cell", Frozen), Reference(Heap()),
    Sequence(structure.ListContent, ()),
]  # fmt: skip


def test_what_joins_make_anew() -> None:
    assert all(map(is_noted, NOTED)) and not any(map(is_noted, NOT_NOTED))


def test_what_is_said_of_a_value_is_known(staging: Staging) -> None:
    x = staging.given("x")
    origins = staging.session.origins
    numbers = [origins.number() for _ in range(3)]
    assert numbers == sorted(set(numbers))
    for value in (x * 2, (1, x), Frozen(1)):
        assert origins.known(value) is None
        origin = Origin(7)
        origins.note(value, origin)
        assert origins.known(value) is origin is origins.of(value)
        origins.note_unknown(value)
        found = origins.known(value)
        assert type(found) is Origin and found.number == 0


def test_what_nothing_was_said_of_is_itself(staging: Staging) -> None:
    x = staging.given("x")
    origins = staging.session.origins
    a, b = x * 2, x * 3
    first, second, pair = origins.of(a), origins.of(b), origins.of((1, a))
    assert all(type(one) is Itself for one in (first, second, pair)) and first is origins.of(a)
    assert isinstance(first, Itself) and isinstance(second, Itself) and isinstance(pair, Itself)
    assert first.made < second.made and pair.made == 0 and first.inside == () and not first.constant
    assert first.number < second.number < pair.number


def loop_of(staging: Staging, *older: Any) -> Loop:
    return module.begin_loop(staging.session, {id(one) for one in older})


def test_what_an_iteration_made(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    origins = session.origins
    before, pair = x * 2, (x, 1)
    loop = loop_of(staging, pair)
    assert origins.is_made_anew(before), "outside of loops"
    with origins.inside(loop):
        made, other, constant = x * 3, (x, 2), tuple([1, "a"])
        for value, wanted in ((before, ()), (pair, ()), (made, (loop,)), (other, (loop,)), (constant, (loop,))):
            assert origins.is_made_anew(value) is bool(wanted)
            found = origins.of(value)
            assert isinstance(found, Itself) and found.inside == wanted
            assert found.constant is (value is constant), "such a tuple may be a constant of the code"
        inner = loop_of(staging, made, other)
        with origins.inside(inner):
            deep = x * 4
            found = origins.of(deep)
            assert isinstance(found, Itself) and found.inside == (loop, inner)
            found = origins.of(other)
            assert isinstance(found, Itself) and found.inside == (loop,)
            assert origins.is_made_anew(deep) and not origins.is_made_anew(other)
        session.objects.externals[id(other)] = other, None
        assert not origins.is_made_anew(other), "the caller's"
    assert origins.is_made_anew(pair)


def test_what_was_stored_before_a_loop_is_older(staging: Staging) -> None:
    class Box:
        held: Any = None

    box, value = staging.new(Box()), (1, 2)
    staging.store(box, "held", value)
    loop = loop_of(staging, box)
    assert id(value) in loop.older and id(box) in loop.older
    assert loop.scope is staging.session.scope and loop.op is None


def test_what_nobody_refers_to_is_let_go(staging: Staging) -> None:
    origins = staging.session.origins
    kept, nested = (object(),), (object(),)
    origins.of(kept)
    outer = (nested,)
    origins.of(outer)
    origins.of(nested)
    number = id(outer)
    origins.forget_unused()
    assert origins.known(kept) and origins.known(outer) and origins.known(nested)
    del outer
    assert number in origins._known
    origins.forget_unused()
    assert number not in origins._known and origins.known(kept) and origins.known(nested)
    inside = id(nested)
    del nested
    origins.forget_unused()
    assert inside not in origins._known and list(origins._held.values()) == [kept]


def test_what_is_asked_apart_is_forgotten(staging: Staging) -> None:
    origins = staging.session.origins
    origins.asked[1] = None  # type: ignore[assignment]
    with pytest.raises(ValueError), origins.asking_apart():
        origins.asked[2] = None  # type: ignore[assignment]
        raise ValueError
    assert list(origins.asked) == [1]


def test_a_branch_says_what_each_path_had(staging: Staging) -> None:
    x = staging.given("x")
    origins = staging.session.origins
    a, pair = x * 2, (x * 3, "a")
    v = staging.branch(x.sum() > 0, Local(), lambda: (a, 1), lambda: (pair[0], 2))
    found = origins.known(v[0])
    assert isinstance(found, Joined) and found.by_path == [origins.of(a), origins.of(pair[0])]
    whole = origins.known(v)
    assert isinstance(whole, Joined) and whole.join is found.join and len(whole.join.ends) == 2
    assert [type(one) for one in whole.by_path] == [Itself, Itself] and whole.join.op.name == "cond"
    w = staging.branch(x.sum() > 0, Local(), lambda: v[0], lambda: x * 4)
    later = origins.known(w)
    assert isinstance(later, Joined) and later.by_path[0] is found and later.number > found.number


def test_what_one_path_has_nothing_of(staging: Staging) -> None:
    """A tensor on one path and a number on the other: of the tensor the other path has none."""
    x = staging.given("x")
    a = x * 2
    v = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: 1)
    assert isinstance(v, Choice)
    found = staging.session.origins.known(v.options[0])
    assert isinstance(found, Joined) and found.by_path == [staging.session.origins.of(a), None]


def test_one_of_several_that_a_path_has(staging: Staging) -> None:
    x = staging.given("x")
    origins = staging.session.origins
    a, b = x * 2, x.int()
    v = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: b)
    w = staging.branch(x.sum() > 1, Local(), lambda: v, lambda: x * 5)
    assert isinstance(w, Choice)
    found = origins.known(w.options[0])
    assert isinstance(found, Joined) and isinstance(found.by_path[0], OneOf)
    assert found.by_path[0].options[0] is origins.known(v.options[0])


def test_what_a_loop_carries_and_leaves(staging: Staging) -> None:
    x = staging.given("x")
    origins = staging.session.origins
    a = x * 2
    local = Local(n=x.sum(), v=a, w=(a, "b"))

    def body() -> None:
        local.n, local.v, local.w = local.n - 1, local.v + 1, (local.v, "b")

    staging.loop(local, lambda: local.n > 0, body)
    left, pair = origins.known(local.v), origins.known(local.w)
    assert isinstance(left, Left) and isinstance(pair, Left)
    carried = left.carried
    assert isinstance(carried, Carried) and carried.first is origins.of(a)
    assert isinstance(carried.next, Itself) and carried.loop in carried.next.inside
    assert pair.carried.loop is carried.loop and pair.carried is not carried
    part = origins.known(local.w[0])
    assert isinstance(part, Left) and part.carried.next is carried, "what the iteration began with"
    loop = carried.loop
    assert loop.op is not None and loop.op.name == "while_loop" and loop.end is not None and loop.body is not None
