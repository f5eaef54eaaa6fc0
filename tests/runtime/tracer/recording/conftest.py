"""Calls of torch inside a trace that has begun: what they ask, what they record, and where they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.recording.session import Session


@pytest.fixture
def as_eager(session: Session, made: Callable[..., Any]) -> Callable[..., BaseException]:
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
