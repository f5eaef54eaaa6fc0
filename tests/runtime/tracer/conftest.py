"""A trace that has begun, for tests of single parts of it: what they compute is recorded, and nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from runtime.tracer.ambient import state
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.session import Session
from tests.runtime.tracer.control.staging import Staging

Input = Callable[..., torch.Tensor]
"""``given(name, *sizes)``: a tensor of a Program's inputs; a size that is None is an open one."""
Number = Callable[..., Staged]
"""``number(kind="int")``: a Python number that is read off a tensor."""


@pytest.fixture
def session() -> Iterator[Session]:
    """A trace, which this thread is in."""
    made = Session("f")
    before = state.enter(made)
    yield made
    state.enter(before)


@pytest.fixture
def given(session: Session) -> Input:
    def make(name: str, *sizes: int | None, **options: object) -> torch.Tensor:
        real = torch.ones([4 if size is None else size for size in sizes], **options)  # type: ignore[call-overload]
        return session.inputs.add_input(real, name, frozenset(dim for dim, size in enumerate(sizes) if size is None))

    return make


@pytest.fixture
def number(session: Session, given: Input) -> Number:
    def make(kind: str = "int") -> Staged:
        dtype = {"int": torch.int64, "bool": torch.bool, "float": torch.float64}[kind]
        tensor = given(f"{kind}{len(session.program.inputs)}", dtype=dtype)
        return session.from_tensor("item", tensor, kind=kind)

    return make


@pytest.fixture
def recorded(session: Session) -> Callable[[], list[str]]:
    """The operators that were recorded since the last call, by name."""
    seen = 0

    def since() -> list[str]:
        nonlocal seen
        names = [op.name for op in session.program.block.ops[seen:]]
        seen = len(session.program.block.ops)
        return names

    return since


@pytest.fixture
def staging(session: Session) -> Iterator[Staging]:
    """A trace in which calls of torch are recorded."""
    made = Staging(session)
    made.enter()
    yield made
    made.leave()
