"""Memory from before a branch or loop: what was written inside is carried as one more value, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.control.branches import trace_path
from runtime.tracer.control.memory_parts import JoinMemory, LoopMemory
from runtime.tracer.control.parts import Body, Branches
from tests.runtime.tracer.control.staging import SIGNS, Local, Staging, agree, xs


def two_paths(staging: Staging, if_true: Any, if_false: Any) -> tuple[JoinMemory, Branches]:
    session = staging.session
    entry = session.storages.snapshot()
    branches = Branches(session, [trace_path(session, "cond", Local(), run) for run in (if_true, if_false)], entry)
    return JoinMemory(branches), branches


def test_what_a_path_wrote_is_carried_once(staging: Staging) -> None:
    x, y = staging.given("x y")
    session = staging.session
    of_x = session.info(x).storage

    def run() -> None:
        x.add_(1)
        x[0].mul_(2)
        y * 2

    part, branches = two_paths(staging, run, lambda: None)
    assert [(type_, label) for type_, label in part.carried()] == [(of_x.value.type, "x")]
    written, other = ([part.yields(path) for path in branches.paths])
    assert written == [branches.paths[0].storages[of_x]] and other == [of_x.origin]


def test_nothing_written_is_nothing_carried(staging: Staging) -> None:
    x = staging.given("x")

    def makes() -> None:
        made = x * 2
        made.add_(1)

    part, branches = two_paths(staging, makes, lambda: x.sum())
    assert part.carried() == [] and [part.yields(path) for path in branches.paths] == [[], []]


def test_what_a_path_that_raised_wrote_is_not_carried(staging: Staging) -> None:
    x = staging.given("x")

    def fails() -> None:
        x.add_(1)
        raise ValueError

    part, branches = two_paths(staging, fails, lambda: None)
    assert branches.paths[0].ended and part.carried() == []


def test_writes_on_one_both_and_no_path(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        z = x.clone()

        def if_true() -> None:
            x[0] = 7
            z.add_(y)

        def if_false() -> None:
            z.mul_(3)
            z[1:].zero_()

        do.branch(x.sum() > 0, Local(), if_true, if_false)
        return x.clone(), y.clone(), z

    agree(staging, told, *({**one, "y": [1.0, 2.0, 4.0]} for one in SIGNS))


def test_a_written_view_of_what_another_view_shows(staging: Staging) -> None:
    def told(do: Any, m: torch.Tensor) -> Any:
        row, column, flat = m[0], m[:, 1], m.view(-1)

        def if_true() -> None:
            row.add_(10)

        def if_false() -> None:
            column.zero_()

        do.branch(m.sum() > 0, Local(), if_true, if_false)
        flat[-1] = 5
        return m.clone(), row.clone(), column.clone(), flat.clone()

    one = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    agree(staging, told, {"m": one}, {"m": [[-a for a in row] for row in one]})


def test_a_write_in_a_branch_of_a_branch(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        def write() -> None:
            x.mul_(2)

        def inner() -> None:
            do.branch(x[0] > 1, Local(), write, lambda: None)

        do.branch(x.sum() > 0, Local(), inner, lambda: None)
        return x.clone()

    agree(staging, told, *SIGNS, *xs((2, 2, 2)))


@pytest.mark.parametrize("write", ["whole", "view", "none"])
def test_what_iterations_write_is_carried(write: str, staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        local = Local(n=0)

        def body() -> None:
            local.n = local.n + 1
            if write == "whole":
                x.add_(y)
            elif write == "view":
                x[1:].add_(y[:2])

        do.loop(local, lambda: local.n < do.number(y.int().sum()), body)
        return local.n, x.clone(), y.clone()

    calls = [{"x": [1.0, 2.0, 3.0], "y": [float(k)] * 3} for k in (0, 1, 2)]
    agree(staging, told, *calls)
    loop = next(op for op in staging.session.program.block.ops if op.name == "while_loop")
    assert [out.hint for out in loop.outputs] == ["", "n", "x"] if write != "none" else ["", "n"]


def test_the_attempt_after_knows_what_was_written(staging: Staging) -> None:
    """First nothing is carried; what an iteration turns out to write is, from the next attempt on."""
    x, y = staging.given("x y")
    session = staging.session
    of_x, of_y = session.info(x).storage, session.info(y).storage
    part = LoopMemory(session)
    carried = []
    for written in ((), (of_x,), (of_x,)):
        entry = session.storages.snapshot()
        made = []

        def prepare(scope: Any, part: LoopMemory = part, entry: Any = entry, made: Any = made) -> None:
            body = Body(session, scope, entry, set(), None, set())
            made_here = part.arguments(body)
            assert [storage.value for storage in written] == made_here
            scope.block.args.extend(made_here)

        path = trace_path(session, "while_loop", Local(), lambda: x.add_(1).sum(), prepare)
        assert of_x.value is of_x.origin, "put back after the attempt"
        body = Body(session, path.scope, entry, set(), None, set())
        stable = part.leave(body, path, [])
        carried.append((stable, [label for _, label in part.carried()], part.inits()))
        if written:
            assert part.yields(path) == [path.storages[of_x]]
            assert path.scope.begins[path.scope.block.args[0]] is of_x.origin
        part = part.again()
    assert carried == [(False, [], []), (True, ["x"], [of_x.origin]), (True, ["x"], [of_x.origin])]
    made_of = session.new_variable(of_x.value.type)
    part = LoopMemory(session, [of_x])
    part.recorded(iter([made_of]))
    assert of_x.value is made_of and of_y.value is of_y.origin


def test_a_loop_in_a_branch_and_a_branch_in_a_loop(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        def grow() -> None:
            x.mul_(2)

        def shrink() -> None:
            x[0] += 9

        def body() -> None:
            do.branch(x[0] > 1, Local(), grow, shrink)

        def looped() -> None:
            do.loop(Local(), lambda: x.sum() < 30, body)

        do.branch(x.sum() > 0, Local(), looped, lambda: None)
        return x.clone()

    agree(staging, told, *SIGNS, *xs((0, 2, 2)))
