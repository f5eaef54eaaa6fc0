"""What a loop's tensors share memory with: before it, from one iteration to the next, and after it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.control.loop_aliases import LoopAliases
from tests.runtime.tracer.control.staging import Local, Staging, agree

CALLS = [{"x": [1.0, 2.0, 3.0], "y": [float(count)] * 3} for count in (0, 1, 2, 3)]
"""So many iterations."""

STEPS: dict[str, tuple[Any, Any]] = {
    "the same tensor": (lambda x, y: x, lambda a, b, x, y: (a, b)),
    "a new one": (lambda x, y: x, lambda a, b, x, y: (a * 2, b)),
    "one from outside": (lambda x, y: x, lambda a, b, x, y: (y, b)),
    "the other one": (lambda x, y: x, lambda a, b, x, y: (b, a)),
    "both become one": (lambda x, y: x, lambda a, b, x, y: (a, a)),
    "both become a new one": (lambda x, y: x * 2, lambda a, b, x, y: twice(a * 2)),
    "a view of a new one": (lambda x, y: x * 2, lambda a, b, x, y: viewed(a + 1)),
    "a view of the other one": (lambda x, y: x, lambda a, b, x, y: (a, a[:])),
    "a view from outside": (lambda x, y: x[:2], lambda a, b, x, y: (y[1:], b)),
}


def twice(made: torch.Tensor) -> Any:
    return made, made


def viewed(made: torch.Tensor) -> Any:
    return made, made[:]


@pytest.mark.parametrize("where", ["body", "after"])
@pytest.mark.parametrize("kind", STEPS)
def test_a_write_to_what_a_loop_carries(kind: str, where: str, staging: Staging) -> None:
    first, step = STEPS[kind]

    def told(do: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        count = do.number(y.int()[0])
        other = x + 10
        local = Local(a=first(x, y), b=other, n=0)

        def body() -> None:
            if where == "body":
                local.a.mul_(2)
            local.a, local.b = step(local.a, local.b, x, y)
            local.n = local.n + 1

        do.loop(local, lambda: local.n < count, body)
        if where == "after":
            local.a.mul_(2)
            local.b[:1].sub_(1)
        return x.clone(), y.clone(), other.clone(), local.a.clone(), local.b.clone()

    agree(staging, told, *CALLS)


def test_an_alias_is_known_to_hold_in_the_first_iteration(staging: Staging) -> None:
    """What stands for a tensor in the body has memory of its own, which is the memory from before at first."""
    x = staging.given("x")
    session = staging.session
    local = Local(a=x)
    found: Any = None

    def body() -> None:
        nonlocal found
        found = [(alias.base, alias.when) for alias in session.info(local.a).storage.aliases]
        local.a = local.a * 2

    staging.loop(local, lambda: local.a.sum() < 50, body)
    ((base, when),) = found
    assert base is session.info(x).storage and when.maybe
    ((base, when),) = [(alias.base, alias.when) for alias in session.info(local.a).storage.aliases]
    assert base is session.info(x).storage and when.maybe, "and so it is after the loop, where no iteration ran"
    op = next(op for op in session.program.block.ops if op.name == "while_loop")
    assert len(op.outputs) == 2, "nothing is recorded for that"
    local.a.add_(1)
    assert len(op.outputs) == 3


def test_what_an_iteration_makes_shares_nothing_with_the_next(staging: Staging) -> None:
    x = staging.given("x")
    session, local = staging.session, Local(a=x * 2, b=x * 3)
    before = session.info(local.a).storage

    def body() -> None:
        local.a, local.b = local.a + 1, local.b * 2

    staging.loop(local, lambda: local.a.sum() < 50, body)
    a, b = session.info(local.a).storage, session.info(local.b).storage
    assert a is not b and {alias.base for alias in a.aliases} == {before}
    assert not a.unknown_aliases and not b.unknown_aliases


def test_too_many_chains_of_views_are_told_apart_no_more(staging: Staging) -> None:
    """Reading goes on; a write to what may be the memory is refused, with the place."""
    m = staging.given("m")
    session, local = staging.session, Local(v=m[:, :2], n=0)

    def body() -> None:
        local.v, local.n = local.v.t(), local.n + 1

    staging.loop(local, lambda: local.n < staging.number(m.int().sum()), body)
    assert session.info(local.v).storage.unknown_aliases
    local.v * 2
    with pytest.raises(TraceError, match="an iteration makes it a view of another tensor's memory") as caught:
        m.add_(1)
    assert caught.value.code == "D2S222" and caught.value.location is not None
    assert caught.value.location.text.strip() == "m.add_(1)"


def test_another_view_from_outside(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        count = do.number(y.int()[0])
        local = Local(v=x[:1], n=0)

        def body() -> None:
            local.v = x.narrow(0, 2, 1)
            local.n = local.n + 1

        do.loop(local, lambda: local.n < count, body)
        local.v.add_(9)
        return x.clone(), local.v.clone()

    agree(staging, told, *CALLS)


def test_slots_that_changed_are_forgotten(staging: Staging) -> None:
    x = staging.given("x")
    storage = staging.session.info(x).storage
    part = LoopAliases()
    for number in ((0, 0), (1, 0), (2, 1)):
        part._share(number, storage, ())
    part._share((1, 0), (2, 0), ())
    part._not_known((0, 0), (2, 0))
    part._not_known((1, 0), storage)
    part._not_known((1, 0), (1, 0))
    assert len(part.shares) == 4 and list(part.unknown) == [((0, 0), (2, 0)), ((1, 0), storage)]
    again = part.again()
    part.forget({2})
    assert [share.number for share in part.shares] == [(0, 0), (1, 0)] and list(part.unknown) == [((1, 0), storage)]
    part.forget({1})
    assert [share.number for share in part.shares] == [(0, 0)] and not part.unknown
    assert len(again.shares) == 4 and len(again.unknown) == 2, "the next attempt has its own"
    assert again.shares[0] is not part.shares[0] and again.shares[0].cases == []


def test_a_share_is_there_once(staging: Staging) -> None:
    x = staging.given("x")
    storage = staging.session.info(x).storage
    steps, other = staging.session.info(x[1:]).steps, staging.session.info(x[:1]).steps
    part = LoopAliases()
    one = part._share((0, 0), storage, steps)
    assert part._share((0, 0), storage, staging.session.info(x[1:]).steps) is one
    assert part._share((0, 0), storage, other) is not one and part._share((0, 1), storage, steps) is not one
    assert part._share((0, 0), (1, 0), steps) is part._share((0, 0), (1, 0), steps) is not one
