"""``squeeze`` of sizes that are not known while tracing: what becomes a fact, and what data decides."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.recording import squeezes
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


def facts(session: Session) -> list[str]:
    return [one.expr for one in session.program.assumes]


@pytest.mark.parametrize("given_dims", [(), (0,), (-2,), ((0, 1),)])
def test_a_size_of_an_input_is_not_one(given_dims: Any, session: Session, given: Any, made: Any) -> None:
    y = made(lambda x: x.squeeze(*given_dims), given("x", None, 1))
    assert y.dim() == (2 if given_dims in ((0,), (-2,)) else 1)
    assert facts(session) == ["Ne(s0, 1)"]


def test_what_is_not_asked_for_stays_open(session: Session, given: Any, made: Any) -> None:
    assert made(lambda x: x.squeeze(1), given("x", None, 1)).dim() == 1
    assert made(lambda x: x * 2, given("y", None)).dim() == 1
    assert facts(session) == []


def test_in_a_replay_nothing_is_assumed(session: Session, given: Any) -> None:
    x = given("x", None)
    session.replaying = object()  # type: ignore[assignment]
    squeezes.settle(session, torch.ops.aten.squeeze.default, [x])
    assert facts(session) == []


def test_what_data_decides(session: Session, given: Any, made: Any) -> None:
    """Of the dimensions that may go: those that are known to, and those that are asked about in the run."""
    some = made(lambda x: x.nonzero().view(-1, 1, 3), given("x", 4, 4, 4))
    assert squeezes.by_data(session, some, ()) == ([1], [0])
    assert squeezes.by_data(session, some, (0,)) == ([], [0])
    assert squeezes.by_data(session, some, (1,)) is None and squeezes.by_data(session, some, (2,)) is None
    assert squeezes.by_data(session, some, ((-3, 1),)) == ([1], [0])
    assert squeezes.by_data(session, given("y", None, 1), ()) is None, "a size of an input is no matter of data"


def test_sizes_of_inputs_beside_what_data_decides(session: Session, given: Any, made: Any) -> None:
    x, y = given("x", 4), given("y", None)
    both = made(lambda: y[:, None] * x[x > 0])
    assert squeezes.by_data(session, both, ()) == ([], [1]) and facts(session) == ["Ne(s0, 1)"]


def test_too_many_ways(session: Session, given: Any, made: Any) -> None:
    parts = [made(lambda x: x[x > 0], given(f"x{number}", 4)) for number in range(3)]
    two = made(lambda: parts[0][:, None] * parts[1])
    three = made(lambda: two[..., None] * parts[2])
    assert squeezes.by_data(session, two, ()) == ([], [0, 1]) and squeezes.by_data(session, three, ()) is None


def test_in_place(session: Session, given: Any, made: Any) -> None:
    y = made(lambda x: x * 2, given("x", None, 1))
    made(lambda: y.squeeze_(1))
    assert y.dim() == 1 and y.stride() == (1,) and facts(session) == []
    made(lambda: y.squeeze_())
    assert y.dim() == 1 and facts(session) == ["Ne(s0, 1)"]
    assert session.read(y).type == session.type_of(y)


def test_in_place_of_known_sizes_is_torchs_business(session: Session, given: Any) -> None:
    func = torch.ops.aten.squeeze_.default
    assert not squeezes.in_place(session, func, [given("x", 2, 1)], lambda *_: 1 / 0)
    assert not squeezes.in_place(session, torch.ops.aten.t_.default, [given("y", None, 1)], lambda *_: 1 / 0)


def test_whether_a_size_is_known_not_to_be_one(session: Session, given: Any) -> None:
    size = given("x", None).shape[0]
    assert not squeezes.is_known(session, size)
    assert squeezes.is_known(session, size + 2), "a size is not negative"
