"""Objects that an iteration makes: one stand-in for all that the same places know, with what it holds carried once."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.control import loop_objects
from runtime.tracer.control.loop_objects import Cell, LoopObjects, fill, stand_in
from runtime.tracer.control.older import Identities, older
from runtime.tracer.values.structure import Attribute, Choice, DictContent, ListContent
from tests.runtime.tracer.control.staging import Local, Staging, agree, xs

CALLS = xs((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1))
"""So many iterations, as many as there are numbers above zero."""


class Box:
    def __init__(self, value: Any = None) -> None:
        self.value = value


class Pair:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


class Rows(list):  # type: ignore[type-arg]
    pass


def found(staging: Staging, before: list[Any], make: Any) -> tuple[LoopObjects, dict[int, Any], list[Any]]:
    """What ``find`` finds of what ``make`` gives, slot by slot; ``before``: what is older."""
    session = staging.session
    objects = Identities(session.objects.created)
    old = older(session, (), before, objects)
    values = make()
    looked = LoopObjects(session, objects, old)
    return looked, looked.find(list(enumerate(values))), values


def test_what_is_made_and_what_is_older(staging: Staging) -> None:
    before, box = [1], staging.new(Box())
    looked, _, values = found(staging, [before, box], lambda: [[1], {}, {1}, deque(), Rows(), staging.new(Box())])
    assert all(map(looked.is_made, values))
    external = [2]
    staging.session.objects.externals[id(external)] = (external, None)
    assert not any(map(looked.is_made, (before, box, external, Box(), 1, "a", None, (1,), staging.given("x"))))


def test_one_object_in_two_places_has_one_cell(staging: Staging) -> None:
    def make() -> list[Any]:
        one, other = staging.new(Box(1)), staging.new(Box(2))
        return [one, other, (one, 5)]

    looked, made, (one, other, _) = found(staging, [], make)
    assert made[id(one)].cell is not made[id(other)].cell and made[id(one)].cls is Box
    assert made[id(one)].cell.positions == {(0, ()), (2, (0,))} and made[id(other)].cell.positions == {(1, ())}
    assert looked.contents == {made[id(one)].cell: (1,), made[id(other)].cell: (2,)}
    assert made[id(one)].cell.names == ("value",) and not made[id(one)].cell.is_container


def test_what_objects_hold_has_a_place_in_them(staging: Staging) -> None:
    def make() -> list[Any]:
        inner = [1, 2]
        return [staging.new(Pair(inner, staging.new(Box(inner)))), {"a": inner}]

    looked, made, (pair, table) = found(staging, [], make)
    cells = {type(value).__name__: made[id(value)].cell for value in (pair, pair.first, pair.second, table)}
    assert cells["list"].positions == {
        (cells["Pair"], ("first",)), (cells["Box"], ("value",)), (cells["dict"], ("a",)),
    }  # fmt: skip
    assert cells["Box"].positions == {(cells["Pair"], ("second",))}
    assert looked.contents[cells["list"]] == [1, 2] and type(looked.contents[cells["list"]]) is ListContent
    assert type(looked.contents[cells["dict"]]) is DictContent
    assert cells["list"].is_container and cells["dict"].kind != cells["list"].kind


@pytest.mark.parametrize("make", [list, dict, OrderedDict, set, deque, Rows], ids=lambda make: make.__name__)
def test_containers_are_of_a_kind(make: Any, staging: Staging) -> None:
    _, made, (one, other) = found(staging, [], lambda: [make(), make()])
    assert made[id(one)].cell.kind == made[id(other)].cell.kind and made[id(one)].cell.cls is make
    assert made[id(one)].cell != made[id(other)].cell, "they are known in other places"


def test_a_container_with_attributes(staging: Staging) -> None:
    def make() -> list[Any]:
        rows = Rows([1])
        rows.note = [2]
        return [rows]

    looked, made, (rows,) = found(staging, [], make)
    cell, inner = made[id(rows)].cell, made[id(rows.note)].cell
    assert cell.names == ("note",) and inner.positions == {(cell, (Attribute("note"),))}
    content, attributes = cell.parts(looked.contents[cell])
    assert content == [1] and attributes == (rows.note,)


def test_two_objects_that_one_place_may_hold_have_one_cell(staging: Staging) -> None:
    """What it holds is that of whichever it is."""
    x = staging.given("x")
    number = staging.number((x > 0).sum())
    looked, made, (choice,) = found(
        staging, [], lambda: [Choice(number, (staging.new(Box(1)), None, staging.new(Box(2))))])  # fmt: skip
    first, _, second = choice.options
    assert made[id(first)].cell == made[id(second)].cell
    (content,) = looked.contents.values()
    run = staging.finish(content)
    assert run(x=torch.tensor([-1.0, -1.0, -1.0])) == (1,) and run(x=torch.tensor([1.0, 1.0, -1.0])) == (2,)


def test_objects_that_hold_each_other_are_refused(staging: Staging) -> None:
    def make() -> list[Any]:
        one = staging.new(Box())
        staging.store(one, "value", (1, staging.new(Box(one))))
        return [one]

    staging.session.call.advanced = True  # or the trace would begin again
    with pytest.raises(TraceError, match=r"iteration of this loop makes \(Box\) hold each other") as caught:
        found(staging, [], make)
    assert caught.value.code == "D2S226" and "Keep each in one variable" in caught.value.hint


def test_what_is_deep_inside_is_found(staging: Staging) -> None:
    inner: Any = None

    def make() -> list[Any]:
        nonlocal inner
        inner = [1]
        value: Any = inner
        for _ in range(20):
            value = (value, None)
        return [value]

    _, made, _ = found(staging, [], make)
    assert made[id(inner)].cell.positions == {(0, (0,) * 20)}


def cell_of(value: Any, *names: str, shared: bool = False) -> Cell:
    container = isinstance(value, (list, dict, set, deque))
    return Cell(type(value), names, "kind" if container else None, frozenset(), shared, value if container else None)


@pytest.mark.parametrize(("like", "content"), [
    ([1], [2, "a"]), ({"a": 1}, {"b": None}), ({1}, frozenset({2})), (deque([1], maxlen=3), [2]),
    (OrderedDict(a=1), {"b": 2}), (Rows([1]), [3]),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_a_container_that_stands_in(like: Any, content: Any, staging: Staging) -> None:
    session, cell = staging.session, cell_of(like)
    session.journal.open()
    made = stand_in(session, cell)
    assert type(made) is type(like) and len(made) == 0 and made is not like
    assert getattr(made, "maxlen", None) == getattr(like, "maxlen", None)
    fill(session, made, cell, loop_objects.containers.as_content(content))
    assert len(made) == len(content) and all(item in made for item in content) and len(like) == 1
    assert id(made) not in session.objects.created


def test_an_object_that_stands_in(staging: Staging) -> None:
    session = staging.session
    cell = cell_of(Pair(1, 2), "first", "second")
    made = stand_in(session, cell)
    assert type(made) is Pair and vars(made) == {}, "its __init__ does not run again"
    assert session.objects.created[id(made)] is made
    fill(session, made, cell, (3, "b"))
    assert vars(made) == {"first": 3, "second": "b"}


def test_an_exception_that_stands_in(staging: Staging) -> None:
    made = stand_in(staging.session, cell_of(ValueError("why"), "note"))
    assert type(made) is ValueError and made.args == ()


def test_what_lists_that_grow_hold_copies_of(staging: Staging) -> None:
    session = staging.session
    plain, shared = stand_in(session, cell_of(Box(), "value")), stand_in(session, cell_of(Box(), "value", shared=True))
    assert id(shared) in session.containers.held_in_lists and id(plain) not in session.containers.held_in_lists


def test_an_object_made_anew_in_each_iteration(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(box=do.new(Box(x)), n=0)

        def body() -> None:
            local.box = do.new(Box(value_of(do, local.box) * 2))
            local.n = local.n + 1

        do.loop(local, lambda: local.n < do.number((x > 0).sum()), body)
        return value_of(do, local.box), local.n

    agree(staging, told, *CALLS)


def value_of(do: Any, box: Any) -> Any:
    """The attribute of an object that may be one of several."""
    if not isinstance(box, Choice):
        return box.value
    return do.choose(box.selector, Local(), *[lambda one=one: one.value for one in box.options])


def test_a_list_made_anew_that_is_changed_before_it_is_left(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(rows=[x, 0], n=0)

        def body() -> None:
            made = [local.rows[0] + 1, 5]
            do.change(made, lambda held: held.__setitem__(1, local.n))
            local.rows, local.n = made, local.n + 1

        do.loop(local, lambda: local.n < do.number((x > 0).sum()), body)
        return local.rows, local.n

    agree(staging, told, *CALLS)


def test_two_names_for_one_object(staging: Staging) -> None:
    """They are two names for one stand-in, in the body and after the loop."""
    x = staging.given("x")
    first = staging.new(Box(x))
    local = Local(a=first, b=first, n=0)

    def body() -> None:
        if isinstance(local.a, Choice):
            assert all(one is other for one, other in zip(local.a.options, local.b.options, strict=True))
        else:
            assert local.a is local.b
        local.a = local.b = staging.new(Box(x * 2))
        local.n = local.n + 1

    staging.loop(local, lambda: local.n < staging.number((x > 0).sum()), body)
    assert len(local.a.options) == 2 and local.a.options[0] is first is local.b.options[0]
    assert local.a.options[1] is local.b.options[1]


def test_the_object_of_the_iteration_before(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(now=do.new(Box(x)), last=do.new(Box(x - 1)), n=0)

        def body() -> None:
            local.last = local.now
            local.now = do.new(Box(value_of(do, local.last) * 2))
            local.n = local.n + 1

        do.loop(local, lambda: local.n < do.number((x > 0).sum()), body)
        return value_of(do, local.now), value_of(do, local.last), local.n

    agree(staging, told, *CALLS)
