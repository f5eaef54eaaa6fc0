"""Loops: what an iteration changes is carried, nothing else is, and a run has what Python has."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import ScalarType
from runtime.tracer.control import while_loop
from runtime.tracer.numbers.scalars import wrap
from tests.runtime.tracer.control.staging import Local, Staging, agree, xs

CALLS = xs((1, 2, 3), (40, 1, 1), (-1, -2, 0))
"""Several iterations, few, and a sum that never is large."""


def loop_of(staging: Staging) -> Any:
    """The loop that was recorded last."""
    return [op for op in staging.session.program.block.walk() if op.name == "while_loop"][-1]


STATES: dict[str, tuple[Any, Any]] = {
    "a tensor": (lambda x: x, lambda y: y * 2),
    "a tensor that grows": (lambda x: x, lambda y: y.repeat(2)),
    "a tensor of another dtype": (lambda x: x.int(), lambda y: y * 1.5),
    "an int": (lambda x: 1, lambda y: y + 1),
    "an int that becomes a float": (lambda x: 1, lambda y: y * 0.5),
    "a float": (lambda x: 0.5, lambda y: y * 3),
    "a bool": (lambda x: True, lambda y: y == False),
    "a text": (lambda x: "a", lambda y: "b"),
    "None and a number": (lambda x: None, lambda y: 1),
    "a tuple": (lambda x: (x, 1, "a"), lambda y: (y[0] * 2, y[1] + 1, "a")),
    "a nested tuple": (lambda x: (x, (1, None)), lambda y: (y[0], (y[1][0] + 1, None))),
    "a list made anew": (lambda x: [x, 1], lambda y: [y[0] + 1, y[1] + 2]),
    "a dict made anew": (lambda x: {"a": x, "n": 1}, lambda y: {"a": y["a"] * 2, "n": y["n"] + 1}),
    "a view": (lambda x: x[1:], lambda y: y + 1),
}


@pytest.mark.parametrize("kind", STATES)
def test_a_variable(kind: str, staging: Staging) -> None:
    first, step = STATES[kind]

    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(y=first(x), n=0, x=x)

        def body() -> None:
            local.y, local.n = step(local.y), local.n + 1

        do.loop(local, lambda: local.n < do.number((x > 0).sum()), body)
        return local.y, local.n, local.x

    agree(staging, told, *CALLS)
    assert "x" not in [out.hint for out in loop_of(staging).outputs], "it stays what it is"


def test_what_no_iteration_changes_is_not_carried(staging: Staging) -> None:
    x = staging.given("x")
    rows = [x]
    local = Local(y=x, n=1, word="a", rows=rows, pair=(x, 2))

    def body() -> None:
        local.y = local.y * 2

    staging.loop(local, lambda: local.y.sum() < 50, body)
    assert [out.hint for out in loop_of(staging).outputs] == ["", "y"]
    assert local.get()[1:4] == (1, "a", rows) and local.rows is rows and local.pair[0] is x


def test_a_loop_that_changes_nothing(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(y=x)
    staging.loop(local, lambda: x.sum() < 0, lambda: None)
    assert len(loop_of(staging).outputs) == 1 and local.y is x
    run = staging.finish(local.y)
    assert torch.equal(run(x=torch.ones(3)), torch.ones(3))


def test_a_condition_that_changes_something(staging: Staging) -> None:
    """It is asked before the loop, and at the end of each iteration."""

    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(y=x, asked=0)

        def test() -> Any:
            local.asked = local.asked + 1
            return local.y.sum() < 50

        def body() -> None:
            local.y = local.y + 5

        do.loop(local, test, body)
        return local.y, local.asked

    agree(staging, told, *CALLS)


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_attributes_and_containers_from_before(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        box, table, rows, still = do.new(Box(x)), {"a": x, "n": 0}, [0, x], [x]
        local = Local(n=0)

        def body() -> None:
            local.n = local.n + 1
            do.store(box, "value", box.value + x)
            do.change(table, lambda held: held.update(a=held["a"] * 2, n=held["n"] + 1))
            do.change(rows, lambda held: held.__setitem__(0, local.n))

        do.loop(local, lambda: box.value.sum() < 50, body)
        return box.value, table, rows, still

    agree(staging, told, *CALLS[:2])


def test_a_list_that_grows(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        rows, numbers = [x], []
        local = Local(y=x, n=0)

        def body() -> None:
            local.y, local.n = local.y + 9, local.n + 1
            do.change(rows, lambda held: held.append(local.y))
            do.change(numbers, lambda held: held.append(local.n))

        do.loop(local, lambda: local.y.sum() < 50, body)
        return rows, numbers, local.n

    agree(staging, told, *CALLS)


def test_a_loop_in_a_loop(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(y=x, outer=0, inner=0)

        def inside() -> None:
            local.y, local.inner = local.y + 3, local.inner + 1

        def body() -> None:
            local.outer = local.outer + 1
            limit = local.y.sum() + 20
            do.loop(local, lambda: local.y.sum() < limit, inside)

        do.loop(local, lambda: local.y.sum() < 50, body)
        return local.y, local.outer, local.inner

    agree(staging, told, *CALLS)


def test_a_branch_in_a_loop(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        local = Local(y=x, last=None)

        def odd() -> None:
            local.y, local.last = local.y * 3, "odd"

        def even() -> None:
            local.y, local.last = local.y + 1, local.y

        def body() -> None:
            do.branch(local.y[0] % 2 == 1, local, odd, even)

        do.loop(local, lambda: local.y.sum() < 50, body)
        return local.y, local.last

    agree(staging, told, *xs((1, 2, 3), (40, 10, 1), (0, 0, 0)))


def test_an_iteration_that_raises(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(y=x)

    def body() -> None:
        local.y = x * 2
        raise ValueError("once")

    staging.loop(local, lambda: x.sum() < 0, body)
    run = staging.finish(local.y)
    assert torch.equal(run(x=torch.ones(3)), torch.ones(3))
    with pytest.raises(ValueError, match="once"):
        run(x=-torch.ones(3))


def test_a_body_is_not_traced_more_often_than_its_state_changes(
    staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    attempts = 0
    trace_path = while_loop.trace_path

    def counted(*args: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return trace_path(*args)

    monkeypatch.setattr(while_loop, "trace_path", counted)
    x = staging.given("x")
    local = Local(y=x, z=x, n=0)

    def body() -> None:
        local.z, local.y, local.n = local.y, local.y * 2, local.n + 1

    staging.loop(local, lambda: local.y.sum() < 50, body)
    assert attempts == 3, "first y and n change, then z, which is the y from before"


def test_what_never_gets_a_structure_that_stays_is_refused(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(y=x, n=0)

    def body() -> None:
        local.y, local.n = (local.y,), local.n + 1

    with pytest.raises(TraceError, match="'y' never reaches a fixed structure") as caught:
        staging.loop(local, lambda: local.n < staging.number(x.int().sum()), body)
    assert caught.value.code == "D2S250" and caught.value.location is not None
    assert local.y is x and local.n == 0 and staging.session.scope.parent is None


def test_sizes_of_a_variable_that_is_none_are_refused(staging: Staging) -> None:
    x = staging.given("x")
    with pytest.raises(TraceError, match="shape_invariants names 'z', which is no variable") as caught:
        staging.loop(Local(y=x, n=1), lambda: x.sum() < 0, lambda: None, shape_invariants={"z": (None,)})
    assert caught.value.code == "D2S282" and "Its variables are: y, n." in caught.value.hint


@pytest.mark.parametrize("name", ["max_iterations", "recompute", "checkpoints"])
def test_options_of_a_run_are_attributes(name: str, staging: Staging) -> None:
    x = staging.given("x")
    local = Local(y=x)

    def body() -> None:
        local.y = local.y * 2

    staging.loop(local, lambda: local.y.sum() < 50, body, **{name: 7, "unknown": 1})
    assert loop_of(staging).attrs == {name: 7}


def test_a_draw_from_the_process_in_a_loop_with_checkpoints_is_refused(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(y=x, n=0.0)
    session = staging.session

    def body() -> None:
        (drawn,) = session.emit("host.random.random", [], None, [ScalarType("float")])
        local.n = wrap(drawn)

    with pytest.raises(TraceError, match="a loop with checkpoints calls random.random") as caught:
        staging.loop(local, lambda: x.sum() < 0, body, checkpoints=2)
    assert caught.value.code == "D2S214" and caught.value.location is not None


def test_a_leaf_that_iterations_make_of_a_tensor_from_before_is_refused(staging: Staging) -> None:
    x = staging.given("x")
    y = x * 2

    def body() -> None:
        y.requires_grad_()

    with pytest.raises(TraceError) as caught:
        staging.loop(Local(), lambda: y.sum() < 50, body)
    assert caught.value.location is not None and caught.value.location.text.strip() == "y.requires_grad_()"
    assert not y.requires_grad


def test_what_is_surely_older_is_carried_without_another_attempt(staging: Staging, monkeypatch: Any) -> None:
    """An equal attempt would store to it again; only of what nothing was known before must that be seen."""
    attempts: list[Any] = []
    begun = while_loop._Attempt.__init__

    def init(attempt: Any, *args: Any) -> None:
        attempts.append(attempt)
        begun(attempt, *args)

    monkeypatch.setattr(while_loop._Attempt, "__init__", init)

    def told(do: Any, x: torch.Tensor) -> Any:
        local, kept = Local(n=0), {"y": x}

        def body() -> None:
            do.change(kept, lambda held: held.update(y=held["y"] * 2))
            local.n = local.n + 1

        do.loop(local, lambda: local.n < do.number((x > 0).sum()), body)
        return kept["y"], local.n

    agree(staging, told, *CALLS)
    assert len(attempts) == 2, "one finds that n and kept change, and one that nothing else does"
