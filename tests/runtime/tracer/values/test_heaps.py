"""Lists that lists which grow hold by reference: all names of one see what any of them changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.values import array, heaps
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.structure import ListContent, Number, Row, Tensor, list_row
from tests.runtime.tracer.control.staging import Local, Staging
from tests.runtime.tracer.values.growing import act, agree_on_counts, by_reference, items_up_to

SOME = [{"x": [1.0, -2.0, 3.0], "i": number} for number in (1, 2, 3)]
CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "append": lambda do, one, x: act(do, "append", one, x + 7),
    "set": lambda do, one, x: act(do, "set_", one, 0, x + 7),
    "pop": lambda do, one, x: act(do, "pop", one),
    "clear": lambda do, one, x: act(do, "clear", one),
    "reverse": lambda do, one, x: act(do, "reverse", one),
    "extend by itself": lambda do, one, x: act(do, "extend", one, one),
    "replace": lambda do, one, x: act(do, "replace", one, [x, x + 1, x + 2]),
    "splice": lambda do, one, x: act(do, "splice", one, slice(0, 1), [x, x]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_names_see_a_change(change: str, staging: Staging) -> None:
    """Of an item, of the list that was put in, and of another item that is the same list."""
    by_reference(staging.session, list)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        first, second = do.new([x]), do.new([x * 2, x])
        xs = items_up_to(do, [first, second, first], n)
        found = CHANGES[change](do, act(do, "get", xs, n - 1), x)
        CHANGES[change](do, second, x)
        return found, first, second, xs, act(do, "length", first)

    agree_on_counts(staging, told, *SOME)


def test_lists_in_lists_in_lists(staging: Staging) -> None:
    by_reference(staging.session, list)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        inner = do.new([x])
        outer = do.new([inner, do.new([])])
        xs = items_up_to(do, [outer, do.new([inner])], n)
        act(do, "append", inner, x * 2)
        act(do, "append", act(do, "get", xs, 0), do.new([x * 3]))
        act(do, "append", act(do, "get", act(do, "get", xs, 0), -1), x * 4)
        return inner, xs

    agree_on_counts(staging, told, *SOME[:2])


def test_which_list_it_is(staging: Staging) -> None:
    by_reference(staging.session, list)

    def one(do: Any, a: Any, b: Any) -> Any:
        return heaps.identical(staging.session, a, b) if do is staging else a is b

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        first, second, never = do.new([x]), do.new([x]), do.new([x])
        xs = items_up_to(do, [first, second, first], 3)
        item = act(do, "get", xs, n - 1)
        return one(do, item, first), one(do, second, item), one(do, first, second), one(do, item, item), one(
            do, item, never)

    agree_on_counts(staging, told, *SOME)


def test_of_two_that_are_no_rows_nothing_is_said(staging: Staging) -> None:
    session = staging.session
    assert heaps.identical(session, [1], [1]) is None
    by_reference(session, list)
    assert heaps.identical(session, [1], [1]) is None and heaps.identical(session, [1], (1,)) is None
    assert heaps.identical(session, {}, {}) is None
    heap, other = Heap(), Heap()
    heap.add(session, [1])
    other.add(session, [1])
    assert heaps.identical(session, [Row(heap, 0)], [Row(other, 0)]) is False
    assert heaps.identical(session, [Row(heap, 0)], [Row(heap, 0)]) is True
    assert heaps.identical(session, [Row(heap, 0)], [1]) is False


def test_a_list_that_moved_on_one_path(staging: Staging) -> None:
    by_reference(staging.session, list)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        one = do.new([x])
        xs = items_up_to(do, [do.new([x * 2]), do.new([x * 3])], 2)
        do.branch(x.sum() > 0, Local(), lambda: act(do, "append", xs, one), lambda: None)
        act(do, "append", act(do, "get", xs, -1), x + n)
        found = heaps.identical(staging.session, act(do, "get", xs, -1), one) if do is staging else xs[-1] is one
        return xs, one, found

    agree_on_counts(staging, told, {"x": [1.0, 2.0, 3.0], "i": 1}, {"x": [-1.0, 0.0, 0.0], "i": 1})


def test_rows_of_a_heap(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    heap = Heap()
    assert heap.add(session, [x]) == 0 and heap.holds(heap.held) and not heap.holds([])
    number = heap.add(session, [x * 2, x * 3])
    last = heap.add(session, [])
    assert isinstance(heap.row_item(session), Tensor)
    lengths = [array.length(session, [heap.load(session, one)]) for one in (0, number, last)]
    heap.store(session, 0, [x, x, x])
    loaded = heap.load(session, 0)
    assert loaded.alias_set is not None and isinstance(loaded.item, Tensor)
    after = array.length(session, [loaded])
    made = heap.made(session, list, number)
    assert type(made) is list and list_row(made).number is number  # type: ignore[union-attr]
    assert type(heap.made(session, ListContent, 0)) is ListContent
    assert heap.reference(session, made) is number.var and heap.reference(session, [Row(heap, 2)]) == 2
    run = staging.finish([*lengths, after])
    assert run(x=torch.ones(3)) == [1, 2, 0, 3]


def test_rows_that_get_other_items(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    heap = session.containers.heaps["kind"] = Heap()
    heap.add(session, [])
    heap.add(session, [x, x * 2])
    heap.add(session, [1])
    item = heap.row_item(session)
    kinds = item.options if hasattr(item, "options") else ()  # type: ignore[union-attr]
    assert [type(one) for one in kinds] == [Tensor, Number]
    rows = [heap.made(session, list, number) for number in range(3)]
    run = staging.finish(rows)
    found = run(x=torch.ones(3))
    assert [len(one) for one in found] == [0, 2, 1] and found[2] == [1] and found[1][1].tolist() == [2.0] * 3


def test_what_is_no_row_of_the_heap(staging: Staging) -> None:
    session = staging.session
    heap, other = Heap(), Heap()
    for value in ([1], [Row(other, 0)], (Row(heap, 0),)):
        with pytest.raises(TraceError) as found:
            heap.reference(session, value)
        assert found.value.code == "D2S226"
    with pytest.raises(TraceError) as found:
        heap.load(session, 0)
    assert found.value.code == "D2S251", "there is no row yet"


def test_a_heap_for_each_kind_of_items(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    by_reference(session, list)
    kinds: list[list[Any]] = [[x], [x.int()], [x.sum()], [1], [0.5], [True], ["a"], [(1, x)], [], [[]], [{}]]
    found = [heaps.heap_for(session, one) for one in kinds]
    assert len(set(map(id, found))) == len(found)
    assert [heaps.heap_for(session, one) for one in kinds] == found
    assert heaps.heap_for(session, [x * 2, 1]) is found[0] and heaps.heap_for(session, [Row(found[3], 0)]) is found[3]
    assert heaps.heap_for(session, items_up_to(staging, [x * 3], 1)) is found[0]


def test_what_moves(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    inner = [x]
    assert not heaps.move_inside(session, [inner]) and inner == [x], "nothing is held by reference"
    by_reference(session, list)
    second, third, fourth = [x * 2], [x * 3], [x * 4]
    owned = [x * 5]
    session.objects.externals[id(owned)] = owned, None
    assert heaps.move_inside(session, [inner, (second, 1), {"k": third}, 5, x, deque([fourth])])
    assert all(list_row(one) is not None for one in (inner, second, third)) and fourth[0] is not None
    assert list_row(fourth) is None, "a deque is no list"
    assert not heaps.move_inside(session, [inner, 1, owned]) and owned[0] is not None and list_row(owned) is None
    rows = [list_row(one) for one in (inner, second, third)]
    assert len({id(row.heap) for row in rows}) == 1  # type: ignore[union-attr]
    assert not heaps.move_inside(session, [rows[0].heap.held])  # type: ignore[union-attr]


def test_a_list_that_holds_itself_does_not_move(staging: Staging) -> None:
    session = staging.session
    by_reference(session, list)
    itself: list[Any] = [1]
    itself.append(itself)
    with pytest.raises(TraceError) as found:
        heaps.move_inside(session, [itself])
    assert found.value.code == "D2S251"


def test_lists_inside_of_what_will_grow(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    rows = [[x], ([x * 2],)]
    assert not heaps.settle(session, [rows])
    by_reference(session, list)
    table = {"k": [[x * 3]], "j": deque([[x * 4]])}
    assert heaps.settle(session, [rows, table, 5])
    inner = [rows[0], rows[1][0], table["k"][0], table["j"][0]]
    assert all(list_row(one) is not None for one in inner) and list_row(rows) is None and list_row(table["k"]) is None
    assert not heaps.settle(session, [rows, table]), "they have moved"
    content = ListContent([[x]])
    assert heaps.settle(session, [content]) and list_row(content[0]) is not None


def test_what_is_known_where_the_trace_stands(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    n = staging.number(x.int().sum())
    xs = items_up_to(staging, [x], 1)
    heap = Heap()
    for value in (x, n, xs[0], xs, {"a": x}, [n, x], 1, "a", [Row(heap, n)], [Row(heap, 0)], torch.ones(1)):
        assert heaps.is_there(session, value)
    with session.open("cond"):
        y, m = x * 2, n + 1
        ys = array.of_items(session, [y])
    for gone in (y, m, ys[0], {"a": y}, [x, m], [Row(heap, m)]):
        assert not heaps.is_there(session, gone)
    v = staging.branch(x.sum() > 0, Local(), lambda: 1, lambda: "a")
    assert heaps.is_there(session, v)


def test_what_one_path_put_into_a_heap(staging: Staging) -> None:
    """The heap is carried as the user's lists are."""
    by_reference(staging.session, list)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        xs = items_up_to(do, [do.new([x])], 1)

        def path() -> None:
            act(do, "append", xs, do.new([x * 2]))
            act(do, "append", act(do, "get", xs, 0), x * 3)

        do.branch(n > 1, Local(), path, lambda: act(do, "clear", act(do, "get", xs, 0)))
        return xs

    agree_on_counts(staging, told, *SOME)


def test_a_row_that_grew_before_it_moved(staging: Staging) -> None:
    by_reference(staging.session, list)

    def told(do: Any, x: torch.Tensor, n: Any) -> Any:
        one = items_up_to(do, [x, x * 2, x * 3], n)
        xs = items_up_to(do, [one, do.new([x])], 2)
        act(do, "append", act(do, "get", xs, 0), x + 7)
        return one, xs

    agree_on_counts(staging, told, *SOME)
