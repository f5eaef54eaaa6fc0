"""A trace that has begun, for tests of single parts of it: what they compute is recorded, and nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
import torch

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.ir.printer import print_program
from runtime.tracer.ambient import state
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.attempt import Attempt
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.recording.session import Session
from tests.runtime.tracer.control.staging import Staging, pytest_pyfunc_call

Input = Callable[..., torch.Tensor]
"""``given(name, *sizes)``: a tensor of a Program's inputs; a size that is None is an open one."""
Number = Callable[..., Staged]
"""``number(kind="int")``: a Python number that is read off a tensor."""
Made = Callable[..., Any]
"""``made(function, *args)``: what the function gives; its calls of torch are recorded."""
Refused = Callable[..., AbstractContextManager[None]]
"""``refused(code, text)``: the block ends with a located error of this code, at a line of the test with this text;
``said``: the error says this."""


@pytest.fixture(autouse=True)
def _cache_of_casts() -> Iterator[None]:
    """What a trace switches off, where a test enters only a part of what a trace enters."""
    before = torch.is_autocast_cache_enabled()
    yield
    torch.set_autocast_cache_enabled(before)


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
def made(session: Session) -> Made:
    def call(function: Callable[..., Any], *args: Any) -> Any:
        with ExitStack() as stack:
            stack.enter_context(torch_internals.quiet_shapes())
            stack.enter_context(torch_internals.without_autocast_cache())
            stack.enter_context(torch_internals.below_autograd())
            stack.enter_context(Interceptor(session))
            stack.enter_context(Recorder(session))
            return function(*args)

    return call


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> Refused:
    @contextmanager
    def ending(code: str, text: str, said: str = "") -> Iterator[None]:
        with pytest.raises(TraceError) as found:
            yield
        error = found.value
        assert error.code == code, error
        assert error.location is not None and error.location.file == str(request.path), error
        assert text in error.location.text and said in error.summary, error

    return ending


@pytest.fixture
def program(session: Session) -> Callable[[], list[str]]:
    """The lines of the Program's main Block so far, without places."""
    def lines() -> list[str]:
        _, *body, _, _ = print_program(session.program, locations=False).strip().splitlines()
        return [line.strip() for line in body if not line.strip().startswith("input ")]

    return lines


class Undone(Attempt):
    """An attempt that fails at the end of its block."""

    def __exit__(self, *raised: Any) -> None:
        self.undo()
        super().__exit__(*raised)


@pytest.fixture
def undone(session: Session) -> Callable[[], Attempt]:
    """``with undone():`` what is done in the block is put back at its end."""
    return lambda: Undone(session)


@pytest.fixture
def staging(session: Session) -> Iterator[Staging]:
    """A trace in which calls of torch are recorded."""
    made = Staging(session)
    made.enter()
    yield made
    made.leave()


__all__ = ["pytest_pyfunc_call"]  # what pytest's own frames hold is put back by no attempt that a test makes
