"""``contiguous`` and ``reshape`` of sizes that are not known: memory that is another's for some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.recording import maybe_views
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor
WRITTEN = Findings(sized=frozenset({"written"}))
MAYBE: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x.t().contiguous(),
    "reshape": lambda x: x.t().reshape(-1),
    "flatten": lambda x: x.t().flatten(),
}


@pytest.mark.parametrize("name", MAYBE)
def test_a_write_begins_the_trace_again(name: str, session: Session, given: Any, made: Any) -> None:
    """Whichever of the two is written: for one row it is the same memory."""
    x = given("x", None, 3)
    y = made(MAYBE[name], x)
    assert made(lambda: (y * 2, x * 2))
    for one in (x, y):
        with pytest.raises(Restart) as found:
            made(lambda: one.add_(1))
        assert found.value.known == WRITTEN
    assert session.program.assumes == []


@pytest.mark.parametrize("name", MAYBE)
def test_then_it_is_a_fact_that_no_size_is_one(name: str, session: Session, given: Any, made: Any) -> None:
    session.call.known = WRITTEN
    x = given("x", None, 3)
    y = made(MAYBE[name], x)
    assert [one.expr for one in session.program.assumes] == ["Ne(s0, 1)"]
    made(lambda: (x.add_(1), y.add_(1)))
    assert session.info(x).storage is not session.info(y).storage


@pytest.mark.parametrize("name", MAYBE)
def test_known_sizes_are_a_copy_or_a_view(name: str, session: Session, given: Any, made: Any) -> None:
    x, row = given("x", 2, 3), given("row", 1, 3)
    copy, view = made(MAYBE[name], x), made(MAYBE[name], row)
    assert session.info(copy).storage is not session.info(x).storage
    assert session.info(view).storage is session.info(row).storage
    made(lambda: (x.add_(1), copy.add_(1), view.add_(1)))


def test_other_operators_note_nothing(session: Session, given: Any, made: Any) -> None:
    x = given("x", None, 3)
    y = made(lambda: x.t().clone())
    assert not session.info(y).storage.shared_by_size
    made(lambda: (x.add_(1), y.add_(1)))


def test_in_a_replay_nothing_is_noted(session: Session, given: Any, made: Any) -> None:
    x = given("x", None, 3)
    storage = session.info(x).storage
    session.replaying = object()  # type: ignore[assignment]
    maybe_views.note(session, torch.ops.aten.contiguous.default, [x], [storage])
    assert not storage.shared_by_size
    session.replaying = None
    maybe_views.note(session, torch.ops.aten.contiguous.default, [x], [])
    assert storage.shared_by_size
