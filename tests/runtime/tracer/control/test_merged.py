"""Containers that several paths made: one container after the branch, where the same variables and places know it."""

from __future__ import annotations

from collections import OrderedDict, deque
from types import CellType
from typing import Any

import pytest
import torch

from runtime.tracer.control.merged import is_new
from runtime.tracer.control.older import Identities, older
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values.structure import Choice
from tests.runtime.tracer.control.staging import SIGNS, Local, Staging, agree


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


MADE: dict[str, tuple[Any, Any]] = {
    "lists": (lambda x: [x * 2, 1], lambda x: [x, 2]),
    "lists of other lengths": (lambda x: [x * 2], lambda x: [x, x + 1, x]),
    "lists of other kinds": (lambda x: [x * 2, "a"], lambda x: [None]),
    "empty lists": (lambda x: [], lambda x: []),
    "lists in lists": (lambda x: [[x], [1, [2]]], lambda x: [[x * 3], [2, [x]]]),
    "dicts": (lambda x: {"a": x * 2, "b": [1]}, lambda x: {"a": x, "b": [2]}),
    "dicts of other keys": (lambda x: {"a": x * 2}, lambda x: {"b": 1}),
    "ordered dicts": (lambda x: OrderedDict(a=x), lambda x: OrderedDict(a=x * 2)),
    "sets": (lambda x: {1, 2}, lambda x: {2}),
    "deques": (lambda x: deque([x, x * 2]), lambda x: deque([x])),
    "a list and a dict": (lambda x: [x], lambda x: {"a": x * 2}),
    "a list and a tuple": (lambda x: [x], lambda x: (x * 2,)),
    "a list and None": (lambda x: [x], lambda x: None),
}


def staged(do: Any, x: torch.Tensor, kind: str) -> Any:
    """A variable that has a container of either path."""
    local = Local(held=None)
    first, second = MADE[kind]

    def if_true() -> None:
        local.held = first(x)

    def if_false() -> None:
        local.held = second(x)

    do.branch(x.sum() > 0, local, if_true, if_false)
    return local.held


@pytest.mark.parametrize("kind", MADE)
def test_what_a_run_has(kind: str, staging: Staging) -> None:
    agree(staging, lambda do, x: staged(do, x, kind), *SIGNS)


APART = {"lists of other kinds", "dicts of other keys", "sets", "a list and a dict", "a list and a tuple",
         "a list and None"}  # fmt: skip
"""Those whose contents have no one structure: each path keeps its own."""


@pytest.mark.parametrize("kind", MADE)
def test_those_of_one_kind_are_one_container(kind: str, staging: Staging) -> None:
    """Then it can be changed, and nothing has to be told apart."""
    x = staging.given("x")
    held = staged(staging, x, kind)
    assert isinstance(held, Choice) is (kind in APART)
    assert isinstance(held, Choice) or type(held) is type(MADE[kind][0](x))


def test_two_names_for_one_list_are_two_names_after(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local, box = Local(a=None, b=None), do.new(Box(None))

        def path(value: torch.Tensor) -> Any:
            def run() -> None:
                local.a = local.b = [value]
                do.store(box, "value", local.a)

            return run

        do.branch(x.sum() > 0, local, path(x * 2), path(x + 1))
        assert local.a is local.b is box.value
        do.change(local.a, lambda held: held.append(1))
        return local.a, local.b, box.value

    agree(staging, told, *SIGNS)


def test_a_list_that_another_variable_knows_on_one_path_only_is_its_own(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(a=None, b=None)

    def both() -> None:
        local.a = local.b = [x * 2]

    def one() -> None:
        local.a = [x]

    staging.branch(x.sum() > 0, local, both, one)
    assert isinstance(local.a, Choice) and isinstance(local.b, Choice)
    assert any(one is other for one in local.a.options for other in local.b.options)


def test_the_list_that_a_variable_begins_with_is_one_of_them(staging: Staging) -> None:
    """Where the variable is all that refers to it, nobody can tell it from a new one."""

    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(rows=[1, x])

        def another() -> None:
            local.rows = [2, x * 2]

        def changed() -> None:
            do.change(local.rows, lambda held: held.__setitem__(0, 3))

        do.branch(x.sum() > 0, local, another, changed)
        assert isinstance(local.rows, list)
        return local.rows

    agree(staging, told, *SIGNS)


def test_a_list_that_others_refer_to_stays_apart(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        rows = [1, x]
        local = Local(rows=rows)

        def another() -> None:
            local.rows = [2, x * 2]

        def changed() -> None:
            do.change(rows, lambda held: held.append(x))

        do.branch(x.sum() > 0, local, another, changed)
        assert type(local.rows) in (Choice, list) and len(rows) < 4
        return local.rows, rows

    agree(staging, told, *SIGNS)


def test_what_an_object_that_a_path_made_holds(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(box=None)

        def path(number: int) -> Any:
            def run() -> None:
                local.box = do.new(Box([x * number]))
                do.change(local.box.value, lambda held: held.append(number))

            return run

        do.branch(x.sum() > 0, local, path(2), path(3))
        boxes = local.box.options if isinstance(local.box, Choice) else (local.box,)
        index = local.box.selector if isinstance(local.box, Choice) else 0
        return do.choose(index, Local(), *[lambda box=box: box.value for box in boxes])

    agree(staging, told, *SIGNS)


def test_what_a_path_made(staging: Staging) -> None:
    before, box, given = [1], staging.new(Box(1)), {"a": 1}
    session = staging.session
    objects = Identities(session.objects.created)
    old = older(session, [lambda: before], [], objects)
    session.objects.externals[id(given)] = (given, None)
    made, another, cell = [1], staging.new(Box(2)), CellType(1)
    new = {
        Place("content", made): True, Place("attribute", another, "value"): True,
        Place("attribute", cell, "cell_contents"): True, Place("content", before): False,
        Place("content", given): False, Place("attribute", box, "value"): False,
        Place("attribute", Box(3), "value"): False, Place("global", {}, "name"): False,
    }  # fmt: skip
    assert {place: is_new(session, place, old, objects) for place in new} == new
