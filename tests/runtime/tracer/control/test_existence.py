"""In which runs a container exists that a path made."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.control import existence, unused
from runtime.tracer.control.branches import trace_path
from runtime.tracer.numbers import selected
from runtime.tracer.values.structure import Choice
from tests.runtime.tracer.control.staging import Local, Staging


def made(staging: Staging, x: torch.Tensor) -> Local:
    """A variable that is a list where the sum is positive, else None."""
    local = Local(held=None)

    def first() -> None:
        local.held = [x]

    staging.branch(x.sum() > 0, local, first, lambda: None)
    return local


def test_it_exists_where_the_variable_is_it(staging: Staging) -> None:
    local = made(staging, staging.given("x"))
    assert isinstance(local.held, Choice)
    place = next(n for n, one in enumerate(local.held.options) if one is not None)
    _, facts = staging.session.containers.existing[id(local.held.options[place])]
    assert facts == {local.held.selector.var: frozenset((place,))}


@pytest.mark.parametrize("number", [0, 1])
def test_a_path_without_it(staging: Staging, number: int) -> None:
    session = staging.session
    local = made(staging, staging.given("x"))
    container = local.held.options[0] if local.held.options[0] is not None else local.held.options[1]
    there = local.held.options[number] is container

    def prepare(scope: Any) -> None:
        selected.hold(session, local.held.selector.var, frozenset((number,)))

    path = trace_path(session, "switch", local_names(), lambda: None, prepare)
    assert existence.is_missing(path, container) is not there


def local_names() -> Any:
    class NoNames:
        names = ()

        def get(self) -> tuple[Any, ...]:
            return ()

        def set(self, values: tuple[Any, ...]) -> None:
            assert values == ()

        def holds(self, place: Any) -> bool:
            return False

    return NoNames()


def test_nothing_is_known_where_iterations_differ(staging: Staging) -> None:
    session = staging.session
    local = made(staging, staging.given("x"))
    known = dict(session.containers.existing)
    path = trace_path(session, "while_loop", local_names(), lambda: len(session.containers.existing))
    assert known and path.result == 0
    assert session.containers.existing == known and local.held is not None


def test_what_nothing_refers_to_is_let_go_of(staging: Staging) -> None:
    session = staging.session
    local = made(staging, staging.given("x"))
    assert session.containers.existing and session.containers.known_to_exist
    local.held = None
    session.origins.forget_unused()
    unused.forget(session)
    assert not session.containers.existing and not session.containers.known_to_exist
