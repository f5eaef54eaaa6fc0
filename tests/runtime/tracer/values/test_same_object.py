"""``is`` of values that branches and loops made anew: a run says what eager says, and nothing else is decided."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.values import array, same_object
from runtime.tracer.values.origins import Given, Itself, Joined
from runtime.tracer.values.same_object import may_be_one
from runtime.tracer.values.structure import Choice
from tests.runtime.tracer.control.staging import SIGNS, Local, Staging, agree, xs


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


def one(do: Any, a: Any, b: Any) -> Any:
    """``a is b``."""
    if not isinstance(do, Staging):
        return a is b
    return same_object.identical(do.session, a, b)


MANY = [*SIGNS, *xs((1, 1, 1), (0.5, -0.25, 0), (9, 9, 9))]
BRANCHES: dict[str, Callable[[Any, Any, Any, Any], tuple[Any, Any]]] = {
    "one or the other": lambda do, x, a, b: (lambda: a, lambda: b),
    "one or a new one": lambda do, x, a, b: (lambda: a, lambda: x * 2),
    "the same": lambda do, x, a, b: (lambda: a, lambda: a),
    "new ones": lambda do, x, a, b: (lambda: x * 2, lambda: x * 3),
    "one or none": lambda do, x, a, b: (lambda: a, lambda: None),
    "a view": lambda do, x, a, b: (lambda: a[:], lambda: b),
    "one of several": lambda do, x, a, b: (
        lambda: do.branch(x.sum() > 2, Local(), lambda: a, lambda: b), lambda: b),
}  # fmt: skip


@pytest.mark.parametrize("kind", BRANCHES)
def test_a_tensor_after_a_branch(kind: str, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = x + 1, x + 2
        v = do.branch(x.sum() > 0, Local(), *BRANCHES[kind](do, x, a, b))
        if isinstance(v, Choice):
            return [do.branch(x.sum() > 0, Local(), lambda: one(do, v.options[0], a), lambda: False)]
        if v is None:
            return [False]
        if kind == "one or none":
            return [one(do, v, a)]
        return [one(do, v, a), one(do, b, v), one(do, v, x), one(do, v, v)]

    agree(staging, told, *MANY)


def test_tuples_and_records_and_their_parts(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        inner, other = Frozen(x + 1), (x + 2, 1)
        pair = (inner, other)
        v = do.branch(x.sum() > 0, Local(), lambda: pair, lambda: (inner, (x + 3, 1)))
        return one(do, v, pair), one(do, v[0], inner), one(do, v[1], other), one(do, v[0].value, inner.value), one(
            do, v[1][0], other[0])

    agree(staging, told, *MANY)


def test_two_that_the_same_branch_gave(staging: Staging) -> None:
    """The paths are compared one by one."""
    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = x + 1, x + 2
        local = Local(v=None, w=None)

        def first() -> None:
            local.v, local.w = a, a

        def second() -> None:
            local.v, local.w = a, b

        do.branch(x.sum() > 0, local, first, second)
        again = do.branch(x.sum() > 2, Local(), lambda: local.v, lambda: local.w)
        return one(do, local.v, local.w), one(do, again, a), one(do, again, local.w), one(do, again, local.v)

    agree(staging, told, *MANY)


LOOPS: dict[str, Callable[[Any, Any, Any], None]] = {
    "it stays": lambda local, a, b: None,
    "a new one each time": lambda local, a, b: setattr(local, "v", local.v * 1),
    "another one from before": lambda local, a, b: setattr(local, "v", b),
    "two change places": lambda local, a, b: local.set((local.n, local.w, local.v)),
    "one becomes the other": lambda local, a, b: setattr(local, "v", local.w),
    "a new one becomes both": lambda local, a, b: local.set((local.n, *[local.v * 1] * 2)),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_a_tensor_that_a_loop_carries(kind: str, staging: Staging) -> None:
    """After the loop, which may be of no iterations, of one and of several."""
    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = x + 1, x + 2
        local = Local(n=x.sum(), v=a, w=b)

        def body() -> None:
            LOOPS[kind](local, a, b)
            local.n = local.n - 2

        do.loop(local, lambda: local.n > 0, body)
        return one(do, local.v, a), one(do, b, local.v), one(do, local.v, local.w), one(do, local.w, b)

    agree(staging, told, *MANY)


def test_what_an_iteration_asks(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = x + 1, x + 2
        local = Local(n=x.sum(), v=a, w=b, count=x.sum() * 0)

        def body() -> None:
            found = one(do, local.v, a)
            if not isinstance(found, bool):
                found = do.branch(found, Local(), lambda: x.sum() * 0 + 1, lambda: x.sum() * 0)
            local.count = local.count * 2 + found
            local.v, local.w = local.w, local.v
            local.n = local.n - 1

        do.loop(local, lambda: local.n > 0, body)
        return local.count

    agree(staging, told, *MANY)


def test_objects_that_no_join_made(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a, b, pair = x * 2, x * 2, (1, 2)
    before = len(session.program.block.ops)
    assert may_be_one(session, a, a) == "same" and may_be_one(session, a, b) == "other"
    assert may_be_one(session, pair, pair) == "same" and may_be_one(session, pair, tuple([1, 2])) == "other"
    assert same_object.identical(session, a, a) is True and same_object.identical(session, a, b) is False
    assert len(session.program.block.ops) == before, "nothing is recorded for it"
    assert not same_object.is_joined(session, a) and not same_object.is_joined(session, pair)


def test_what_is_known_of_a_join(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a, b = x * 2, x * 3
    v = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: b)
    w = staging.branch(x.sum() > 1, Local(), lambda: x * 4, lambda: x * 5)
    assert [may_be_one(session, v, one) for one in (a, b, x, v, w)] == ["open", "open", "other", "same", "other"]
    assert same_object.is_joined(session, v) and same_object.is_joined(session, w)
    before = len(session.program.block.ops)
    same_object.identical(session, v, a)
    outputs = [op.outputs for op in session.program.block.ops if op.name == "cond"]
    assert len(session.program.block.ops) == before and len(outputs[0]) == 2, "an output of the branch says it"
    same_object.identical(session, a, v)
    assert len(outputs[0]) == 2, "once"


def test_two_that_one_branch_gave_are_compared_path_by_path(staging: Staging) -> None:
    """Each path has two objects, which are others on every path, though one path's is the other path's."""
    x = staging.given("x")
    a, b = x * 2, x * 3
    v, w = staging.branch(x.sum() > 0, Local(), lambda: (a, b), lambda: (b, a))
    assert may_be_one(staging.session, v, w) == "other" and may_be_one(staging.session, v, a) == "open"


def test_what_nobody_knows(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a, b = x * 2, x * 3
    xs = array.of_items(session, [a, b])
    item = array.get(session, xs, 0)
    assert may_be_one(session, item, a) == "unknown"
    v = staging.branch(x.sum() > 0, Local(), lambda: item, lambda: b)
    for one_of_them in (item, v):
        with pytest.raises(TraceError) as found:
            same_object.identical(session, one_of_them, a)
        assert found.value.code == "D2S264"


def test_an_object_of_an_iteration_is_none_of_before(staging: Staging) -> None:
    """What fails in the body is an exception of the run."""
    x = staging.given("x")
    session = staging.session
    local = Local(n=x.sum(), v=x, w=x)

    def body() -> None:
        made = local.v * 2
        assert may_be_one(session, made, local.v) == "other"
        local.w = local.v
        local.v = made
        local.n = local.n - 1

    staging.loop(local, lambda: local.n > 0, body)
    assert may_be_one(session, local.v, x) == may_be_one(session, local.w, x) == "open"
    assert may_be_one(session, local.v, local.w) == "open"
    run = staging.finish(local.v)
    assert run(x=torch.ones(3)).tolist() == [8.0] * 3


def test_whose_identity_is_taken(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    for sure in (x, x * 2, (1, x), 1, []):
        same_object.require_one(session, sure)
    noted = (x, 1)
    session.origins.of(noted)
    same_object.require_one(session, noted)
    v = staging.branch(x.sum() > 0, Local(), lambda: noted, lambda: (x * 2, 1))
    with pytest.raises(TraceError) as found:
        same_object.require_one(session, v)
    assert found.value.code == "D2S264"


def test_the_callers_tensors(staging: Staging) -> None:
    outside = staging._reals["y"]
    x, m = staging.given("x m")
    session = staging.session
    assert same_object.is_the_callers(session, x) and same_object.is_the_callers(session, outside)
    assert not same_object.is_the_callers(session, x * 2) and not same_object.is_the_callers(session, m[0])
    assert same_object.related(session, x, x) == "same" and same_object.related(session, x, m) == "other"


def test_how_two_tensors_are_related(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a, b = x * 2, x * 3
    view = a[1:]
    v = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: b)
    w = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: a)
    item = array.get(session, array.of_items(session, [a, b]), 0)
    pairs = {"a": a, "b": b, "view": view, "v": v, "w": w, "item": item, "x": x}
    found = {(p, q): same_object.related(session, pairs[p], pairs[q]) for p in pairs for q in pairs}
    for p, q in found:
        assert found[p, q] == found[q, p] and found[p, p] == "same"
    assert found["a", "b"] == found["a", "view"] == found["a", "x"] == found["v", "x"] == found["item", "x"] == "other"
    assert found["a", "w"] == "same" and found["v", "a"] == found["v", "b"] == "unknown"
    assert found["item", "a"] == found["item", "b"] == "unknown"


def test_whether_two_tensors_may_be_one_whole_memory(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a, b = x * 2, x * 3
    v = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: b)
    part = staging.branch(x.sum() > 0, Local(), lambda: a[:], lambda: b)
    item = array.get(session, array.of_items(session, [a]), 0)
    may = same_object.may_share
    assert may(session, v, a) and may(session, b, v) and may(session, item, a) and may(session, v, part)
    assert not may(session, a, b) and not may(session, v, x) and not may(session, item, b)


def test_what_is_followed(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    a = x * 2
    v = staging.branch(x.sum() > 0, Local(), lambda: a, lambda: x * 3)
    assert same_object.is_followed(session, v, a) and not same_object.is_followed(session, a, x)
    call, other = object(), object()
    p, q, r, s = (x * number for number in range(4, 8))
    session.origins.note(p, Given(1, call, 0, {(0, 1): "same"}, []))
    session.origins.note(q, Given(2, call, 1, {(0, 1): "same"}, []))
    session.origins.note(r, Given(3, other, 0, {}, None))
    assert same_object.is_followed(session, p, q) and may_be_one(session, p, q) == "same"
    assert same_object.is_followed(session, p, a) and not same_object.is_followed(session, r, p)
    assert may_be_one(session, p, s) == "other", "it can be nothing that is older"
    assert may_be_one(session, r, s) == "unknown"


def test_what_a_recursive_call_is_given_may_be_what_is_older(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    older, other = x * 2, x * 3
    known = session.origins.of(older)
    assert isinstance(known, Itself)
    given = x * 4
    session.origins.note(given, Given(9, object(), 0, {}, [known]))
    assert may_be_one(session, given, older) == "unknown" and may_be_one(session, given, other) == "other"
    with pytest.raises(TraceError) as found:
        same_object.identical(session, given, older)
    assert found.value.code == "D2S264"


def test_a_path_that_ended_is_not_asked(staging: Staging) -> None:
    x = staging.given("x")
    a = x * 2

    def fails() -> Any:
        raise ValueError("no")

    v = staging.branch(x.sum() > 0, Local(), lambda: a, fails)
    w = staging.branch(x.sum() > 0, Local(), lambda: x * 3, fails)
    assert may_be_one(staging.session, v, a) == "same" and may_be_one(staging.session, w, a) == "other"
    assert isinstance(staging.session.origins.known(v), Joined) or v is a
