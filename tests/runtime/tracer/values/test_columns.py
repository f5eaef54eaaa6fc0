"""Arrays of a list in a structure that carries more: a run has the same items, and others can be put in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.values import array, unification
from runtime.tracer.values.alias_sets import AliasSet
from runtime.tracer.values.columns import differ, with_items
from runtime.tracer.values.structure import PLAIN, Array, Growing, Known, Number, Options, Sequence, types_of
from tests.oracle import same
from tests.runtime.tracer.control.staging import Plain, Staging, tensors
from tests.runtime.tracer.values.growing import items_up_to

WIDER: dict[str, tuple[Callable[[Any], list[Any]], Callable[[Any], Any]]] = {
    "of one kind": (lambda x: [x, x * 2], lambda x: x * 3),
    "of another size": (lambda x: [x, x * 2], lambda x: x[:1]),
    "a number": (lambda x: [x, x * 2], lambda x: 1),
    "one more of several": (lambda x: [x, 1], lambda x: "a"),
    "one of several": (lambda x: [x, 1, "a"], lambda x: 2),
    "None": (lambda x: [1, 2], lambda x: None),
    "after None": (lambda x: [None, None], lambda x: x),
    "a tuple": (lambda x: [(x, 1), (x * 2, 2)], lambda x: (x * 3, 3)),
    "a tuple with another kind": (lambda x: [(x, 1), (x * 2, 2)], lambda x: (x * 3, "a")),
    "a longer tuple": (lambda x: [(x,), (x * 2,)], lambda x: (x, x)),
    "rows": (lambda x: [[x], [x * 2]], lambda x: [x * 3]),
    "a longer row": (lambda x: [[x], [x * 2]], lambda x: [x, x]),
    "an empty row": (lambda x: [[x, x], [x, x * 2]], lambda x: []),
    "after empty rows": (lambda x: [[], []], lambda x: [x]),
    "a row of numbers": (lambda x: [[1, 2], [3, 4]], lambda x: [5]),
    "a row in a pair": (lambda x: [(1, [x]), (2, [x])], lambda x: (3, [x, x])),
    "a dict": (lambda x: [{"a": x}, {"a": x * 2}], lambda x: {"a": 1}),
    "a dict of other keys": (lambda x: [{"a": x}, {"a": x * 2}], lambda x: {"b": 1}),
}


def wider(staging: Staging, grown: Growing, value: Any) -> Any:
    """The structure that carries the items of a list and another one."""
    session = staging.session
    item = unification.item_structure(session, value, PLAIN)
    return unification.as_items(unification.unify(session, grown.item, item, PLAIN))


@pytest.mark.parametrize("kind", WIDER)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_same_items_in_a_wider_structure(kind: str, count: int, staging: Staging) -> None:
    items, other = WIDER[kind]
    x, i = staging.given("x i")
    session = staging.session
    grown = array.content(items_up_to(staging, items(x), staging.number(i)))
    item = wider(staging, grown, other(x))
    made = with_items(session, grown, item, PLAIN)
    assert made.item is item and made.alias_set is grown.alias_set
    assert [var.type.element.__class__ for var in made.variables] == [  # type: ignore[union-attr]
        type(one) for one in types_of(session, item)]  # fmt: skip
    holder: list[Any] = [made]
    array.append(session, holder, other(x))
    run = staging.finish(holder)
    call = tensors({"x": [1.0, -2.0, 3.0], "i": count})
    same(run(**call), [*items_up_to(Plain(), items(call["x"]), count), other(call["x"])], apart=True)


def test_an_empty_list_takes_any_items(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    (selector,) = session.emit("array.new", [[]], types=types_of(session, Array(Options(()))))
    nothing = Growing((selector,), Options(()), array.of_items(session, [1])[0].alias_set)
    item = unification.item_structure(session, (x, 1), PLAIN)
    made = with_items(session, nothing, unification.as_items(item), PLAIN)
    assert len(made.variables) == 2
    holder: list[Any] = [made]
    array.append(session, holder, (x, 3))
    same(staging.finish(holder)(x=torch.ones(3)), [(torch.ones(3), 3)], apart=True)


def test_what_would_have_to_be_told_apart(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    grown = array.content(array.of_items(session, [x, 1]))
    floats, ints = grown.item.options  # type: ignore[union-attr]
    rows = array.content(array.of_items(session, [[x], [x, x]]))
    for one, item in (
        (grown, floats), (grown, Options((floats,))), (grown, Number("float")),
        (grown, Sequence(tuple, (floats, ints))),
        (array.content(array.of_items(session, [x])), Number("int")),
        (array.content(array.of_items(session, [(x, 1)])), Sequence(tuple, (ints, floats))),
        (array.content(array.of_items(session, [x])), Options((ints, Known(None)))),
        (rows, Array(ints)), (rows, Array(Options((ints,)))),
    ):
        with pytest.raises(TraceError) as found:
            with_items(session, one, item, PLAIN)
        assert found.value.code == "D2S251"


def test_two_kinds_that_would_share_an_array(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    kinds = [unification.structure_of(session, one, PLAIN) for one in (x * 2, x[:2] * 2)]
    numbers, floats = (array.content(array.of_items(session, one)) for one in ([0, 1], [x, x * 2]))
    grown = Growing((*numbers.variables, *floats.variables * 2), Options(tuple(kinds)), AliasSet())
    either = unification.unify(session, *kinds, PLAIN)
    with pytest.raises(TraceError) as found:
        with_items(session, grown, Options((either, Number("int"))), PLAIN)
    assert found.value.code == "D2S251"


def test_the_error_for_items_that_differ(staging: Staging) -> None:
    error: Any = differ(staging.session)
    assert isinstance(error, TraceError) and error.code == "D2S251" and error.location is not None


def test_nothing_is_recorded_for_the_same_structure(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    grown = array.content(array.of_items(session, [(x, 1, "a")]))
    before = len(session.program.block.ops)
    made = with_items(session, grown, grown.item, PLAIN)
    assert made.variables == grown.variables and len(session.program.block.ops) == before


def test_the_place_among_others_is_looked_up(staging: Staging) -> None:
    """Items that are the first of two kinds come to be the second of three."""
    x = staging.given("x")
    session = staging.session
    grown = array.content(array.of_items(session, [x, 1, x * 2]))
    floats, ints = grown.item.options  # type: ignore[union-attr]
    turned = Options((Number("str"), ints, floats))
    made = with_items(session, grown, turned, PLAIN)
    holder: list[Any] = [made]
    array.append(session, holder, "a")
    same(staging.finish(holder)(x=torch.ones(3)), [torch.ones(3), 1, torch.ones(3) * 2, "a"], apart=True)
