"""Calls of torch inside a trace that has begun: what they ask, what they record, and where they are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
import torch

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.ir.printer import print_program
from runtime.tracer.recording.interceptor import Interceptor
from runtime.tracer.recording.recorder import Recorder
from runtime.tracer.recording.session import Session

Made = Callable[..., Any]
"""``made(function, *args)``: what the function gives; its calls of torch are recorded."""
Refused = Callable[..., AbstractContextManager[None]]
"""``refused(code, text)``: the block ends with a located error of this code, at a line of the test with this text;
``said``: the error says this."""


@pytest.fixture
def made(session: Session) -> Made:
    def call(function: Callable[..., Any], *args: Any) -> Any:
        with ExitStack() as stack:
            stack.enter_context(torch_internals.quiet_shapes())
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


@pytest.fixture
def as_eager(session: Session, made: Made) -> Callable[..., BaseException]:
    """``as_eager(function, *tensors)``: the call raises in the trace what it raises in eager, which is given back."""
    def hold(function: Callable[..., Any], *reals: torch.Tensor) -> BaseException:
        count = len(session.program.inputs)
        fakes = [session.inputs.add_input(real, f"argument{count + place}") for place, real in enumerate(reals)]
        with pytest.raises(Exception) as expected:
            function(*reals)
        with pytest.raises(type(expected.value)) as found:
            made(function, *fakes)
        assert type(found.value) is type(expected.value) and found.value.args == expected.value.args
        return found.value

    return hold
