"""Branches: of every kind of value the paths leave a run has that of its path, and nothing else differs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.control import cond as branches
from runtime.tracer.control.branches import PathEnds
from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.values.structure import Choice
from tests.runtime.tracer.control.staging import SIGNS, Local, Staging, Told, agree, xs

VALUES: dict[str, tuple[Told, Told]] = {
    "tensors": (lambda do, x: x * 2, lambda do, x: x - 1),
    "the same tensor": (lambda do, x: x, lambda do, x: x),
    "a tensor from before and a new one": (lambda do, x: x, lambda do, x: x + 1),
    "tensors of other sizes": (lambda do, x: x[:2] * 2, lambda do, x: x * 3),
    "tensors of other dtypes": (lambda do, x: x.int(), lambda do, x: x * 3),
    "tensors of other dimensions": (lambda do, x: x.sum(), lambda do, x: x * 3),
    "views": (lambda do, x: x[1:], lambda do, x: x[:2]),
    "ints": (lambda do, x: 1, lambda do, x: -7),
    "an int and a staged int": (lambda do, x: 1, lambda do, x: do.number(x.int().sum())),
    "floats": (lambda do, x: 0.1, lambda do, x: -0.0),
    "an int and a float": (lambda do, x: 1, lambda do, x: 1.0),
    "bools": (lambda do, x: True, lambda do, x: False),
    "a bool and an int": (lambda do, x: True, lambda do, x: 1),
    "texts": (lambda do, x: "a", lambda do, x: ""),
    "a tensor and None": (lambda do, x: x * 2, lambda do, x: None),
    "a tensor and a number": (lambda do, x: x * 2, lambda do, x: 3),
    "a text and None": (lambda do, x: "a", lambda do, x: None),
    "lists": (lambda do, x: [x * 2, 1], lambda do, x: [x - 1, 2]),
    "lists of other lengths": (lambda do, x: [x * 2], lambda do, x: [x - 1, x]),
    "an empty list": (lambda do, x: [], lambda do, x: [x]),
    "dicts": (lambda do, x: {"a": x * 2}, lambda do, x: {"a": x + 2}),
    "dicts of other keys": (lambda do, x: {"a": x * 2}, lambda do, x: {"b": 1, "a": x}),
    "sets": (lambda do, x: {1, 2}, lambda do, x: {3}),
    "tuples": (lambda do, x: (x * 2, 1), lambda do, x: (x, 2)),
    "nested": (lambda do, x: ({"a": [x, (1, "b")]}, None), lambda do, x: ({"a": [x * 2, (2, "c")]}, x)),
    "dtypes": (lambda do, x: torch.int32, lambda do, x: torch.float64),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_of_either_path(kind: str, staging: Staging) -> None:
    """As what a variable holds, and as what the path gives."""
    if_true, if_false = VALUES[kind]

    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(y=None)

        def path(value: Told) -> Any:
            def run() -> Any:
                local.y = value(do, x)
                return value(do, x)

            return run

        found = do.branch(x.sum() > 0, local, path(if_true), path(if_false))
        return found, local.y

    agree(staging, told, *SIGNS)


def test_what_neither_path_changes_needs_no_output(staging: Staging) -> None:
    x = staging.given("x")
    held = [x]
    local = Local(a=x, b=1, c=held, d=None)
    assert staging.branch(x.sum() > 0, local, lambda: None, lambda: None) is None
    assert local.get()[1:] == (1, held, None) and local.a is x and local.c is held
    assert staging.session.program.block.ops[-1].name == "cond"
    assert staging.session.program.block.ops[-1].outputs == ()


def test_variables_are_put_back_before_the_other_path(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(n=1, y=x)

        def run(by: int) -> Any:
            def path() -> None:
                assert local.n == 1 and local.y is x
                local.n, local.y = local.n + by, local.y * by

            return path

        do.branch(x.sum() > 0, local, run(2), run(3))
        return local.n, local.y

    agree(staging, told, *SIGNS)


def test_a_branch_in_a_branch(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(y=x, word="")

        def inner() -> None:
            def many() -> None:
                local.y, local.word = local.y * 2, "many"

            def few() -> None:
                local.word = "few"

            do.branch(x.sum() > 5, local, many, few)

        def below() -> None:
            local.y = local.y - 1

        do.branch(x.sum() > 0, local, inner, below)
        return local.y, local.word

    agree(staging, told, *SIGNS, *xs((1, 1, 1)))


def test_attributes_and_containers_from_before(staging: Staging) -> None:
    class Box:
        pass

    def told(do: Any, x: torch.Tensor) -> Any:
        box, rows, table = do.new(Box()), [x], {"a": 1}
        do.store(box, "value", 1)

        def if_true() -> None:
            do.store(box, "value", x * 2)
            do.change(rows, lambda held: held.append(x + 1))

        def if_false() -> None:
            do.change(table, lambda held: held.update(b=x))
            do.change(rows, lambda held: held.insert(0, x - 1))

        do.branch(x.sum() > 0, Local(), if_true, if_false)
        return box.value, rows, table

    agree(staging, told, *SIGNS)


def test_an_attribute_that_one_path_sets(staging: Staging) -> None:
    """After the branch it is there in some runs only."""

    class Box:
        pass

    x = staging.given("x")
    box = staging.new(Box())
    staging.branch(x.sum() > 0, Local(), lambda: staging.store(box, "value", 2), lambda: None)
    run = staging.finish(vars(box)["value"])
    assert run(x=torch.ones(3)) == 2 and run(x=-torch.ones(3)) is MISSING


def test_writes_in_place(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        y, view = x.clone(), x[:1]

        def if_true() -> None:
            y.add_(1)

        def if_false() -> None:
            view.mul_(3)

        do.branch(x.sum() > 0, Local(), if_true, if_false)
        return x.clone(), y, view.clone()

    agree(staging, told, *SIGNS)


def test_a_path_that_raises_takes_no_part(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(y=x)

    def fails() -> None:
        local.y = None
        raise ValueError("below zero")

    def goes_on() -> None:
        local.y = x * 2

    staging.branch(x.sum() > 0, local, goes_on, fails)
    assert isinstance(local.y, torch.Tensor)
    run = staging.finish(local.y)
    assert torch.equal(run(x=torch.ones(3)), torch.full((3,), 2.0))
    with pytest.raises(ValueError, match="below zero"):
        run(x=-torch.ones(3))


def test_where_every_path_raises_nothing_follows(staging: Staging) -> None:
    x = staging.given("x")

    def fails() -> None:
        raise ValueError("always")

    with pytest.raises(PathEnds):
        staging.branch(x.sum() > 0, Local(), fails, fails)
    run = staging.finish(None)
    for one in (torch.ones(3), -torch.ones(3)):
        with pytest.raises(ValueError, match="always"):
            run(x=one)


@pytest.mark.parametrize("kind", ["tensors", "texts", "a tensor and None", "lists of other lengths"])
def test_one_of_several(kind: str, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(n=0)

        def path(number: int, value: Told) -> Any:
            def run() -> Any:
                local.n = number
                return value(do, x)

            return run

        index = do.number((x > 0).sum())
        first, second = VALUES[kind]
        paths = (path(10, first), path(20, second), path(30, lambda do, x: x * 5), path(40, first))
        return do.choose(index, local, *paths), local.n

    agree(staging, told, *xs((-1, -1, -1), (1, -1, -1), (1, 1, -1), (1, 1, 1)))


def test_a_switch_over_a_choice_that_gives_each_option_back_is_the_choice(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(y=x)

    def other() -> None:
        local.y = None

    staging.branch(x.sum() > 0, local, lambda: None, other)
    choice = local.y
    assert isinstance(choice, Choice)
    runs = [lambda one=one: one for one in choice.options]
    assert branches.switch(staging.session, choice.selector, runs, Local(), choice) is choice
    assert branches.switch(staging.session, choice.selector, list(reversed(runs)), Local(), choice) is not choice


def test_the_truth_of_a_tensor_is_pytorchs(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        branches.truth(session, x)
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        branches.truth(session, x[:0])
    found = [branches.truth(session, one) for one in (x.sum(), x[:1], x[:1] > 0)]
    assert [one.kind for one in found] == ["bool"] * 3
    run = staging.finish(tuple(found))
    assert run(x=torch.tensor([-2.0, 0.0, 0.0])) == (True, True, False)


def test_the_truth_of_a_number_is_pythons(staging: Staging) -> None:
    i = staging.given("i")
    session, number = staging.session, staging.number(i)
    flag = number > 3
    assert branches.truth(session, flag) is flag
    assert [branches.truth(session, one) for one in ([], "a", None, 2)] == [[], "a", None, 2]
    run = staging.finish((branches.truth(session, number), branches.truth(session, number * 0.5)))
    assert run(i=torch.tensor(0)) == (False, False) and run(i=torch.tensor(3)) == (True, True)


def test_a_mode_that_a_path_leaves_changed_is_refused(staging: Staging) -> None:
    x = staging.given("x")
    with pytest.raises(TraceError, match="stays so after it") as caught:
        staging.branch(x.sum() > 0, Local(), lambda: torch.set_grad_enabled(False) and None, lambda: None)
    assert caught.value.code == "D2S227" and torch.is_grad_enabled()
    assert caught.value.location is not None and caught.value.location.file.endswith("staging.py")
