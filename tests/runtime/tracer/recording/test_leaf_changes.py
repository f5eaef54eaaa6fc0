"""Tensors older than a path that ``requires_grad_()`` changes on it: put back, and lost after the construct."""

from __future__ import annotations

from typing import Any

import torch

from runtime.tracer.recording import leaf_changes
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


def on_a_path(session: Session) -> None:
    """From here on the tensors that are there are older than the path."""
    session.graph.path_start = session.origins.number()


def test_on_the_main_path_nothing_is_noted(session: Session, made: Any) -> None:
    y = made(lambda: torch.zeros(3))
    made(lambda: y.requires_grad_())
    assert session.graph.leaf_changes == {}


def test_what_the_path_made_is_its_own(session: Session, made: Any) -> None:
    on_a_path(session)
    y = made(lambda: torch.zeros(3))
    made(lambda: y.requires_grad_())
    assert session.graph.leaf_changes == {}


def test_an_older_tensor_stands_again_for_what_it_did(session: Session, made: Any) -> None:
    y = made(lambda: torch.zeros(3))
    before = session.info(y)
    on_a_path(session)
    made(lambda: y.requires_grad_())
    made(lambda: y.requires_grad_(False))
    (change,) = session.graph.leaf_changes.values()
    assert change.tensor is y and change.before is before, "the first change counts"
    assert change.location is not None and change.location.text.strip() == "made(lambda: y.requires_grad_())"
    leaf_changes.undo(session, [change])
    assert session.info(y) is before and session.read(y) is before.storage.value


def test_after_the_construct_it_is_lost(session: Session, made: Any, refused: Any) -> None:
    y, row = made(lambda: ((y := torch.zeros(3)), y[0]))
    on_a_path(session)
    made(lambda: y.requires_grad_())
    changes = list(session.graph.leaf_changes.values())
    leaf_changes.undo(session, changes)
    session.graph.path_start, session.graph.leaf_changes = 0, {}
    leaf_changes.forget(session, changes)
    for ask in (lambda: session.read(y), lambda: made(lambda: y * 2), lambda: made(lambda: y.requires_grad),
                lambda: made(lambda: y.requires_grad_())):  # fmt: skip
        with refused("D2S213", "made(lambda: y.requires_grad_())", said="that was made before it"):
            ask()
    assert session.read(row).type == session.type_of(row), "its view is what it was"
    assert session.graph.leaf_changes == {}


def test_a_tensor_lost_on_a_path_is_lost_after_the_next_one(session: Session, made: Any) -> None:
    """What forgets it is a change as well, if the tensor is older than the path around."""
    y = made(lambda: torch.zeros(3))
    on_a_path(session)
    made(lambda: y.requires_grad_())
    (change,) = session.graph.leaf_changes.values()
    leaf_changes.undo(session, [change])
    session.graph.leaf_changes = {}
    leaf_changes.forget(session, [change])
    (outer,) = session.graph.leaf_changes.values()
    assert outer.before is change.before and session.info(y).storage.lost is change
