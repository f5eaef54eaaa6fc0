"""What is kept of tensors that were read: what the types of their Variables do not tell."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.ambient.looks import Look, Looks
from runtime.tracer.recording.session import Session

CPU = torch.device("cpu")


def note(session: Session, tensor: torch.Tensor) -> Look:
    looks, var = Looks(), session.read(tensor)
    looks.note(var, session.fake(tensor), session.info(tensor))
    return looks.of[var]


@pytest.mark.parametrize("make, look", [
    (lambda x: x, Look(False, (3, 1), CPU)), (lambda x: x.t(), Look(False, (1, 3), CPU)),
    (lambda x: x[:, ::2], Look(False, (3, 2), CPU)), (lambda x: x.sum(), Look(False, (), CPU)),
    (lambda x: x.to_sparse(), Look(False, None, CPU)), (lambda x: x.expand(4, 2, 3), Look(False, (0, 3, 1), CPU)),
], ids=["plain", "transposed", "strided", "number", "sparse", "expanded"])  # fmt: skip
def test_how_a_tensor_lies_in_memory(make: Any, look: Look, session: Session, given: Any, made: Any) -> None:
    found = note(session, made(make, given("x", 2, 3)))
    real = make(torch.ones(2, 3))
    assert found == look and (look.strides is None or look.strides == real.stride())


def test_whether_it_needs_a_gradient(session: Session, given: Any, made: Any) -> None:
    w = given("w", 3, requires_grad=True)
    assert note(session, w) == Look(True, (1,), CPU)
    y = made(lambda: w * 2)
    session.info(y).grad_in_some_runs = True
    assert note(session, y) == Look(True, (1,), CPU, True)


def test_the_last_that_is_known_counts(session: Session, given: Any) -> None:
    x = given("x", 3)
    looks, var, info = Looks(), session.read(x), session.info(x)
    looks.note(var, x, info)
    first = looks.of[var]
    looks.note(var, x, info)
    assert looks.of[var] is first, "nothing new"
    info.requires_grad = True
    looks.note(var, x, info)
    assert looks.of[var] == Look(True, (1,), CPU)
    info.grad_in_some_runs = True
    looks.note(var, x, info)
    assert looks.of[var] == Look(True, (1,), CPU, True)


def test_the_memory_of_a_view_is_known_as_well(session: Session, given: Any, made: Any) -> None:
    base = made(lambda x: x * 1, given("x", 2, 3))
    row = made(lambda: base[0])
    looks, info = Looks(), session.info(row)
    looks.note(session.read(row), row, info)
    assert looks.of[info.storage.value] == Look(False, None, CPU), "how it lies there a view does not tell"
    assert len(looks.of) == 2
    known = Looks()
    known.note(session.read(base), base, session.info(base))
    before = known.of[info.storage.value]
    known.note(session.read(row), row, info)
    assert known.of[info.storage.value] is before and before.strides == (3, 1)


def test_memory_that_a_tensor_is(session: Session, given: Any) -> None:
    x = given("x", 2, 3)
    looks = Looks()
    looks.note_memory(session.info(x), x)
    assert looks.of == {session.read(x): Look(False, (3, 1), CPU)}


def test_sizes_that_are_open(session: Session, given: Any) -> None:
    found = note(session, given("x", None, 3))
    assert found.strides is not None and found.strides[1] == 1


def test_the_session_notes_what_it_reads(session: Session, given: Any) -> None:
    x = given("x", 3)
    assert session.looks.of == {}
    var = session.read(x)
    assert session.looks.of == {var: Look(False, (1,), CPU)} and Looks().of == {} == Looks().carried
