"""Tensors after a branch are, on some path, memory from outside or each other's: a write to either tells."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.memory.conditions import PathCondition
from runtime.tracer.memory.storage_table import Storage
from tests.runtime.tracer.control.staging import SIGNS, Local, Staging, agree, xs

WAYS: dict[str, tuple[Any, Any]] = {
    "the tensor or a copy": (lambda x, y: (x, None), lambda x, y: (x.clone(), None)),
    "one or the other": (lambda x, y: (x, None), lambda x, y: (y, None)),
    "a view or a copy": (lambda x, y: (x[1:], None), lambda x, y: (y[1:] * 1, None)),
    "one view or another": (lambda x, y: (x[1:], None), lambda x, y: (x[:2], None)),
    "one tensor twice or two": (lambda x, y: (x, x), lambda x, y: (x, y)),
    "new and the same, or two": (lambda x, y: two(x * 2), lambda x, y: (x * 2, y * 2)),
    "new and a view of it, or two": (lambda x, y: viewed(x * 2), lambda x, y: (x * 2, (y * 2)[1:])),
    "views of the same that lie over each other": (lambda x, y: (x[1:], x[:2]), lambda x, y: (y[1:], x[:2])),
    "the other way round": (lambda x, y: (x, y), lambda x, y: (y, x)),
}


def two(made: torch.Tensor) -> Any:
    return made, made


def viewed(made: torch.Tensor) -> Any:
    return made, made[1:]


WRITES = [(kind, write) for kind in WAYS for write in ("result", "input")]
WRITES += [(kind, "second") for kind in list(WAYS)[4:]]


@pytest.mark.parametrize(("kind", "write"), WRITES)
def test_a_write_after_a_branch(kind: str, write: str, staging: Staging) -> None:
    first, second = WAYS[kind]

    def told(do: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        local = Local(a=None, b=None)

        def if_true() -> None:
            local.a, local.b = first(x, y)

        def if_false() -> None:
            local.a, local.b = second(x, y)

        do.branch(x.sum() > 0, local, if_true, if_false)
        written = {"result": local.a, "input": x, "second": local.b}[write]
        written.mul_(2)
        written[:1].add_(7)
        return x.clone(), y.clone(), local.a.clone(), None if local.b is None else local.b.clone()

    agree(staging, told, *({**one, "y": [1.0, 2.0, 4.0]} for one in SIGNS))


def aliases_of(staging: Staging, tensor: torch.Tensor) -> dict[Storage, PathCondition]:
    return {alias.base: alias.when for alias in staging.session.info(tensor).storage.aliases}


def test_an_alias_holds_where_its_path_was_taken(staging: Staging) -> None:
    x, y = staging.given("x y")
    session, local = staging.session, Local(z=None)

    def if_true() -> None:
        local.z = x

    def if_false() -> None:
        local.z = y

    staging.branch(x.sum() > 0, local, if_true, if_false)
    storage = session.info(local.z).storage
    assert storage not in (session.info(x).storage, session.info(y).storage)
    found = aliases_of(staging, local.z)
    assert set(found) == {session.info(x).storage, session.info(y).storage}
    assert all(when.maybe for when in found.values()) and len(set(found.values())) == 2
    op = session.program.block.ops[-1]
    assert op.name == "cond" and len(op.outputs) == 1, "nothing is recorded for the conditions"
    local.z.add_(1)
    assert len(op.outputs) == 3, "now they have been asked for"


def test_a_tensor_that_each_path_makes_is_nobodys(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(z=None)

    def made(by: int) -> Any:
        def run() -> None:
            local.z = x * by

        return run

    staging.branch(x.sum() > 0, local, made(2), made(3))
    assert aliases_of(staging, local.z) == {} and not staging.session.info(local.z).storage.unknown_aliases


def test_a_view_at_the_same_place_on_every_path_is_always_one(staging: Staging) -> None:
    x = staging.given("x")
    local = Local(z=None, n=0)

    def path(number: int) -> Any:
        def run() -> None:
            local.z, local.n = x[1:], number

        return run

    staging.branch(x.sum() > 0, local, path(1), path(2))
    found = aliases_of(staging, local.z)
    assert list(found) == [staging.session.info(x).storage] and all(when.always for when in found.values())


def test_a_path_that_raised_counts_for_nothing(staging: Staging) -> None:
    x, y = staging.given("x y")
    local = Local(z=y)

    def fails() -> None:
        local.z = x
        raise ValueError

    staging.branch(x.sum() > 0, local, fails, lambda: None)
    assert local.z is y, "it is what the only path that goes on has"


def test_one_of_three_and_a_branch_after_it(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        local = Local(a=x, b=None)

        def path(value: Any) -> Any:
            def run() -> None:
                local.a = value()

            return run

        do.choose(do.number((x > 0).sum()), local, path(lambda: x), path(lambda: y[:]), path(lambda: x + y))

        def other() -> None:
            local.b = local.a

        def none() -> None:
            local.b = y

        do.branch(y.sum() > 0, local, other, none)
        local.b.add_(1)
        local.a.mul_(2)
        return x.clone(), y.clone(), local.a.clone(), local.b.clone()

    ys = ([1.0, 2.0, 4.0], [-1.0, -2.0, -4.0])
    agree(staging, told, *({**one, "y": y} for y in ys for one in xs((-1, -1, -1), (1, -1, -1), (1, 1, -1))))


def test_a_write_on_a_path_to_what_a_branch_before_it_gave(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        local = Local(a=x)

        def other() -> None:
            local.a = y

        def write() -> None:
            local.a.mul_(3)

        do.branch(x.sum() > 0, local, other, lambda: None)
        do.branch(x[0] > -2, local, write, lambda: None)
        return x.clone(), y.clone(), local.a.clone()

    agree(staging, told, *({**one, "y": [1.0, 2.0, 4.0]} for one in (*SIGNS, *xs((-5, 1, 1), (-5, 9, 9)))))
