"""A detached tensor to which values with a history are written has memory of its own, which always is its source's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import ScalarType
from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.memory import aliases, detached
from runtime.tracer.memory.conditions import ALWAYS, when
from runtime.tracer.recording.session import Session
from tests.oracle import same
from tests.runtime.tracer.control.staging import Staging

Tensor = torch.Tensor
DETACHED: dict[str, Callable[[Tensor], Tensor]] = {
    "detach": lambda x: x.detach(), "data": lambda x: x.data, "of a view": lambda x: x[1:].detach(),
    "twice": lambda x: x.detach().detach(),
}  # fmt: skip


def places(session: Session, tensor: Tensor) -> frozenset[Any]:
    """Where it was detached."""
    return frozenset(step.location for step in session.info(tensor).steps if step.detaches)


@pytest.mark.parametrize("name", DETACHED)
def test_a_detached_tensor_is_a_view_at_first(name: str, session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    info = session.info(made(DETACHED[name], x))
    assert info.storage is session.info(x).storage and info.detached and not info.storage.aliases


@pytest.mark.parametrize("name", DETACHED)
def test_a_write_with_a_history_begins_the_trace_again(name: str, session: Session, given: Any, made: Any) -> None:
    x, w = given("x", 3), given("w", 3, requires_grad=True)
    tensor = made(DETACHED[name], x)
    made(lambda: tensor.mul_(2))  # which has none
    with pytest.raises(Restart) as found:
        made(lambda: tensor.mul_(w[: tensor.shape[0]]))
    assert found.value.known == Findings(detached=places(session, tensor)) and found.value.known.detached


@pytest.mark.parametrize("name", DETACHED)
def test_then_it_has_memory_of_its_own(name: str, session: Session, given: Any, made: Any) -> None:
    """Both hold what eager's hold, and each has the history that eager's has."""
    def told(x: Tensor, w: Tensor) -> Any:
        y = x * 1
        tensor = DETACHED[name](y)
        tensor.mul_(w[: tensor.shape[0]])
        tensor.add_(1)
        y.mul_(2)
        return y, tensor

    staging = Staging(session)
    x, w = given("x", 3), given("w", 3, requires_grad=True)
    with pytest.raises(Restart) as found:
        made(told, x, w)
    session.call.known = found.value.known
    y, tensor = made(told, x, w)
    info = session.info(tensor)
    assert info.steps == () and not info.detached and info.storage is not session.info(y).storage
    assert aliases.reached(info, ())[-1] is session.info(y).storage and info.storage.aliases[0].when is ALWAYS
    assert info.requires_grad and not session.info(y).requires_grad
    run = staging.finish((y, tensor))
    reals = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
    for mine, eager in zip(run(x=reals[0], w=reals[1]), told(*reals)):
        same(mine.detach(), eager.detach())
        assert mine.requires_grad == eager.requires_grad


def test_only_what_was_detached_last_and_at_a_known_place(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    one = made(lambda: x.detach())
    other = made(lambda: x.detach())  # on a line of its own: Python 3.10 knows no columns
    row = made(lambda: one[1:])
    session.call.known = Findings(detached=places(session, one) | {None})  # other steps have no place
    for tensor in (other, row):
        info = session.info(tensor)
        before = info.storage, info.steps
        detached.split(session, info, session.read(tensor))
        assert (info.storage, info.steps) == before
    info, value = session.info(one), session.read(one)
    steps = info.steps
    detached.split(session, info, value)
    [alias] = info.storage.aliases
    assert info.storage.value is value and (alias.base, alias.steps) == (session.info(x).storage, steps)
    assert info.fixed == () and info.storage.origin is None


def test_what_is_not_detached_may_be_written(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    for tensor in (x, made(lambda: x * 2), made(lambda: x[1:])):
        detached.require_own_history(session, session.info(tensor))


def test_a_view_of_a_detached_tensor(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    one = made(lambda: x.detach())
    row = made(lambda: one[1:])
    with pytest.raises(Restart) as found:
        detached.require_own_history(session, session.info(row))
    assert found.value.known == Findings(detached=places(session, one))


def test_what_may_be_a_detached_tensor_on_some_path(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    one, other = made(lambda: (x.detach(), x * 2))
    info = session.info(one)
    flag = session.new_variable(ScalarType("bool"), "flag")
    aliases.add(session.info(other).storage, info.storage, info.steps, when(flag))
    with pytest.raises(Restart) as found:
        detached.require_own_history(session, session.info(other))
    assert found.value.known == Findings(detached=places(session, one))
    session.call.known = found.value.known
    detached.require_own_history(session, session.info(other))


def test_a_history_that_paths_left_it_without(session: Session, given: Any, made: Any, refused: Any) -> None:
    x = given("x", 3)
    one = made(lambda: x.detach())
    session.call.known = Findings(detached=places(session, one))
    with refused("D2S222", "detached.require_own_history(", said="comes out of a branch or a loop"):
        detached.require_own_history(session, session.info(one))


def test_a_trace_that_cannot_begin_again(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    one = made(lambda: x.detach())
    session.call.advanced = True
    with pytest.raises(TraceError, match="D2S266"):
        detached.require_own_history(session, session.info(one))
