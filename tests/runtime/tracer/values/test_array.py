"""Operations on lists whose length only a run knows: a run has what Python's own lists have, its errors included."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.values import array, structure
from runtime.tracer.values.structure import Growing, Number, Options, Tensor
from tests.oracle import same
from tests.runtime.tracer.control.staging import Local, Plain, Staging
from tests.runtime.tracer.values.growing import act, agree_on_counts, items_up_to


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Record:
    value: Any


ITEMS: dict[str, Callable[[Any], list[Any]]] = {
    "tensors": lambda x: [x * 2, x + 1, x.abs(), x - 1],
    "tensors of other sizes": lambda x: [x[:1] * 2, x + 1, x[1:] * 3, x[:0] * 1],
    "ints": lambda x: [1, -2, 3, 4],
    "floats": lambda x: [0.5, -0.0, float("inf"), 2.0],
    "texts": lambda x: ["a", "", "c", "d"],
    "None": lambda x: [None, None, None, None],
    "pairs": lambda x: [Pair(x * 2, 1), Pair(x, 2), Pair(x + 1, 3), Pair(x, 4)],
    "dicts": lambda x: [{"a": x * 2}, {"a": x}, {"a": x + 1}, {"a": x * 3}],
    "records": lambda x: [Record(x * 2), Record(x), Record(x + 1), Record(x - 1)],
    "rows": lambda x: [[x * 2, x], [x], [], [x + 1]],
    "numbers and tensors": lambda x: [1, x * 2, 0.5, x + 1],
    "pairs and numbers": lambda x: [(1, x), 2, (3, x * 2), 4],
}
COPIED = ("dicts", "records", "rows")
CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "append": lambda do, xs, item: act(do, "append", xs, item),
    "insert at the start": lambda do, xs, item: act(do, "insert", xs, 0, item),
    "insert before the last": lambda do, xs, item: act(do, "insert", xs, -1, item),
    "insert far away": lambda do, xs, item: act(do, "insert", xs, 9, item),
    "set": lambda do, xs, item: act(do, "set_", xs, -1, item),
    "set at a place": lambda do, xs, item: act(do, "set_", xs, 1, item),
    "extend": lambda do, xs, item: act(do, "extend", xs, [item, item]),
    "extend by nothing": lambda do, xs, item: act(do, "extend", xs, []),
    "replace": lambda do, xs, item: act(do, "replace", xs, [item]),
    "replace by nothing": lambda do, xs, item: act(do, "replace", xs, []),
    "splice": lambda do, xs, item: act(do, "splice", xs, slice(1, 2), [item, item]),
    "splice out": lambda do, xs, item: act(do, "splice", xs, slice(None, -1), []),
    "splice in at the end": lambda do, xs, item: act(do, "splice", xs, slice(-1, None), [item]),
    "splice with ends that cross": lambda do, xs, item: act(do, "splice", xs, slice(2, 1), [item]),
    "pop": lambda do, xs, item: act(do, "pop", xs),
    "pop the first": lambda do, xs, item: act(do, "pop", xs, 0),
    "get": lambda do, xs, item: act(do, "get", xs, 0),
    "get the last but one": lambda do, xs, item: act(do, "get", xs, -2),
    "concat": lambda do, xs, item: act(do, "concat", xs, [item]),
    "concat before": lambda do, xs, item: act(do, "concat", [item], xs),
    "concat nothing": lambda do, xs, item: act(do, "concat", xs, []),
    "slice": lambda do, xs, item: act(do, "slice_", xs, slice(1, None)),
    "turned around": lambda do, xs, item: act(do, "slice_", xs, slice(None, None, -1)),
    "every second": lambda do, xs, item: act(do, "slice_", xs, slice(None, None, 2)),
    "reverse": lambda do, xs, item: act(do, "reverse", xs),
    "repeat": lambda do, xs, item: (act(do, "repeat", xs, 2), None)[1],
    "clear": lambda do, xs, item: act(do, "clear", xs),
    "length": lambda do, xs, item: act(do, "length", xs),
}


@pytest.mark.parametrize("kind", ITEMS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change(change: str, kind: str, staging: Staging) -> None:
    """Of a list of none to three items; what it gives, and what the list holds afterwards."""

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        *items, item = ITEMS[kind](x)
        xs = items_up_to(do, items, n)
        found = CHANGES[change](do, xs, item)
        return found, xs

    agree_on_counts(staging, told, copies=kind in COPIED)


def test_an_index_that_only_a_run_knows(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = items_up_to(do, [1, 2, 3], 3)
        act(do, "set_", xs, n - 1, 7)
        return act(do, "get", xs, n - 2), act(do, "pop", xs, n), xs

    agree_on_counts(staging, told)


def test_two_lists_that_grew(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs, ys = items_up_to(do, [x, x * 2, x * 3], n), items_up_to(do, [x + 1, x[:1]], n - 1)
        act(do, "extend", xs, ys)
        both = act(do, "concat", ys, xs)
        act(do, "splice", xs, slice(1, 1), ys)
        act(do, "replace", ys, xs)
        return xs, ys, both

    agree_on_counts(staging, told)


def test_a_list_to_itself(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = items_up_to(do, [1, 2, 3], n)
        twice = act(do, "concat", xs, xs)
        act(do, "extend", xs, xs)
        act(do, "repeat", twice, 3)
        return xs, twice

    agree_on_counts(staging, told)


def test_repeated_no_times(staging: Staging) -> None:
    for count in (0, -1):
        xs = items_up_to(staging, [1, 2], 2)
        array.repeat(staging.session, xs, count)
        assert xs == []


@pytest.mark.parametrize("where", [slice(None, None, 2), slice(None, None, -1)])
def test_slices_with_steps_are_not_assigned(where: slice, staging: Staging) -> None:
    xs = items_up_to(staging, [1, 2], 2)
    with pytest.raises(TraceError) as found:
        array.splice(staging.session, xs, where, [3])
    assert found.value.code == "D2S253"


def test_a_copy_is_another_list(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = items_up_to(do, [1, 2, 3], n)
        ys = array.copy(xs) if do is staging else xs.copy()
        act(do, "append", ys, 4)
        return xs, ys

    agree_on_counts(staging, told)


def test_what_pythons_own_plus_made(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = items_up_to(do, [x, x * 2, x * 3], n)
        made = [x - 1, x] + xs + [x + 1] + xs
        return made, (x, *xs), act(do, "length", made)

    agree_on_counts(staging, told)


def test_what_plus_made_is_joined_once(staging: Staging) -> None:
    """And anew in a path that the first does not reach, or where the list is another one since."""
    x = staging.given("x")
    session = staging.session
    xs = items_up_to(staging, [1, 2], 2)
    made = xs + [3]
    first = array.parts_joined(made)
    assert array.parts_joined(made) is first and structure.growing(made) is first and len(made) == 2
    made.append(4)
    assert array.parts_joined(made) is not first
    del made[-1]

    def path() -> None:
        array.parts_joined([*made, 5])

    staging.branch(x.sum() > 0, Local(), path, lambda: None)
    assert all(map(session.visible, array.parts_joined([*made, 5]).variables))


def test_a_list_that_others_hold_is_copied_when_read(staging: Staging) -> None:
    """The content of the list then is no longer that of the copy."""
    xs = items_up_to(staging, [1, 2], 2)
    before = array.content(xs)
    array.append(staging.session, xs, 3)
    assert array.content(xs) is not before and array.content([before]) is before


def test_ordinary_lists_beside_one_that_grew(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    like = array.content(items_up_to(staging, [x * 2, x], 2))
    fits = array.as_growing(session, [x + 1], like)
    assert isinstance(fits.item, Tensor) and fits.alias_set.find() is like.alias_set.find()
    wider = array.as_growing(session, [1], like)
    assert isinstance(wider.item, Options) and [type(one) for one in wider.item.options] == [Tensor, Number]
    assert array.as_growing(session, [], like).item is like.item
    other = items_up_to(staging, [x], 1)
    grown = array.as_growing(session, other, like)
    assert isinstance(grown.item, Tensor) and grown.alias_set.find() is like.alias_set.find()


PUTS: dict[str, Callable[[Any, list[Any], torch.Tensor], Any]] = {
    "append": lambda session, xs, y: array.append(session, xs, y),
    "set": lambda session, xs, y: array.set_(session, xs, 0, y),
    "extend": lambda session, xs, y: array.extend(session, xs, [y]),
    "insert": lambda session, xs, y: array.insert(session, xs, 0, y),
    "replace": lambda session, xs, y: array.replace(session, xs, [y]),
}


@pytest.mark.parametrize("how", PUTS)
@pytest.mark.parametrize("written", ["what was put in", "what was taken out"])
def test_a_list_is_lost_where_an_item_is_written(how: str, written: str, staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    y, other = x * 2, x * 3
    xs = array.of_items(session, [x * 4])
    PUTS[how](session, xs, y)
    other.add_(1)
    array.length(session, xs)
    (y if written == "what was put in" else array.get(session, xs, 0)).add_(1)
    with pytest.raises(TraceError) as found:
        array.length(session, xs)
    assert found.value.code == "D2S222"


def test_items_that_differ_are_one_of_several(staging: Staging) -> None:
    x = staging.given("x")
    (grown,) = array.of_items(staging.session, [x, 1, "a", None, 2])
    assert isinstance(grown.item, Options) and len(grown.item.options) == 4
    (grown,) = array.of_items(staging.session, [None])
    assert isinstance(grown.item, Options) and len(grown.variables) == 1, "there is an array at all"


def test_a_store_is_noted(staging: Staging) -> None:
    x = staging.given("x")
    xs = items_up_to(staging, [x], 1)

    def told(do: Plain) -> None:
        staging.branch(x.sum() > 0, Local(), lambda: array.append(staging.session, xs, x * 2), lambda: None)

    told(staging)
    run = staging.finish(xs)
    assert len(run(x=torch.ones(3))) == 2 and len(run(x=-torch.ones(3))) == 1


def test_a_deque_is_given_another_content(staging: Staging) -> None:
    items: deque[Any] = deque([1, 2], 5)
    array.store(staging.session, items, array.of_items(staging.session, [3, 4]))
    assert isinstance(items[0], Growing) and items.maxlen == 5
    assert staging.finish(items)() == deque([3, 4])


@pytest.mark.parametrize("name", ["stack", "cat"])
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_tensors_put_together(name: str, dim: int, staging: Staging) -> None:
    function = getattr(torch, name)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        rows = x.repeat(2, 1)
        xs = items_up_to(do, [rows, rows * 2, rows + 1], n)
        if do is not staging:
            return function(xs, dim)
        found = array.join(staging.session, f"aten.{name}.default", xs, dim)
        place = dim % found.dim()
        assert [type(size) for size in found.shape[:place]] == [int] * place
        assert isinstance(found.shape[place], torch.SymInt) and type(found.shape[-1 if place == 0 else 0]) is int
        return found

    agree_on_counts(staging, told, *[{"x": [1.0, 2.0, 3.0], "i": number} for number in (1, 2, 3)])


@pytest.mark.parametrize(("name", "dim"), [("stack", 2), ("stack", -3), ("cat", 1), ("cat", -2)])
def test_a_dimension_that_there_is_not(name: str, dim: int, staging: Staging) -> None:
    x = staging.given("x")
    with pytest.raises(IndexError) as wanted:
        getattr(torch, name)([torch.ones(3)], dim)
    with pytest.raises(IndexError) as found:
        array.join(staging.session, f"aten.{name}.default", array.of_items(staging.session, [x]), dim)
    assert str(found.value) == str(wanted.value)


def test_other_items_are_not_put_together(staging: Staging) -> None:
    x = staging.given("x")
    for items in ([1], [x, 1], [(x,)], [x, x.int()]):
        with pytest.raises(TraceError) as found:
            array.tensors(staging.session, array.of_items(staging.session, items))
        assert found.value.code == "D2S252"
    xs = array.of_items(staging.session, [x, x[:1]])
    var, item = array.tensors(staging.session, xs)
    assert var is array.content(xs).variables[0] and item.shape == (structure.DYNAMIC,)


def test_a_gradient_of_what_is_put_together(staging: Staging) -> None:
    w = staging.given("w")
    for needs in (True, False):
        with torch.set_grad_enabled(needs):
            found = array.join(staging.session, "aten.cat.default", array.of_items(staging.session, [w * 2, w]), 0)
        assert staging.session.info(found).requires_grad is needs


def test_an_item_of_one_kind_is_plain(staging: Staging) -> None:
    x = staging.given("x")
    xs = array.of_items(staging.session, [None, None])
    assert array.get(staging.session, xs, 0) is None
    got = array.get(staging.session, array.of_items(staging.session, [x, x * 2]), 1)
    assert isinstance(got, torch.Tensor) and got is not x
    same(staging.finish(got)(x=torch.ones(3)), torch.full((3,), 2.0))
