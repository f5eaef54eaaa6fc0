"""The oracle: a function run eagerly and as a Program gives the same values, types, effects and exceptions."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import operators
from runtime.calling import LiveCallee, Options
from runtime.ir.verify import verify
from runtime.tracer import flatten, trace
from runtime.tracer.boundary.tracing import Traced
from tests import oracle
from tests.goldens import no_passes


def bind(function: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    target = function.forward if isinstance(function, torch.nn.Module) else function
    return dict(zip(inspect.signature(target).parameters, args))


def trace_call(function: Any, *args: Any, dynamic: dict[str, frozenset[int]] | None = None) -> Traced:
    """The Program for a call."""
    traced = trace(
        function,
        flatten(bind(function, args)),
        name="test",
        dynamic=dynamic,
        call=lambda target, bound: operators.call(target, **bound),
    )
    everything = [traced.program.output, *(effect.tree for effect in traced.effects)]
    verify(dataclasses.replace(traced.program, output=everything))
    return traced


def ready(traced: Traced) -> LiveCallee:
    """It, to be called; once more for each call, as nothing here counts them."""
    return LiveCallee(traced, Options(exceptions=traced.raised, views=list(traced.views)))


@pytest.fixture
def check() -> Callable[..., Traced]:
    """``check(function, first, *others)``: one Program, traced with the first argument, right for every one."""

    def run(function: Any, *inputs: Any, dynamic: dict[str, frozenset[int]] | None = None) -> Traced:
        calls = [one if isinstance(one, tuple) else (one,) for one in inputs]
        traced = trace_call(function, *copy.deepcopy(calls[0]), dynamic=dynamic)
        with no_passes():
            ready = LiveCallee(traced, Options(exceptions=traced.raised, views=list(traced.views)))
        for args in calls:
            mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
            expected = oracle.run(function, theirs, gradients=False)
            actual = oracle.run(lambda *args: ready.call(flatten(bind(function, args))), mine, gradients=False)
            oracle.hold(actual, expected, f"for {args}", around=[("arguments", mine, theirs)])
        return traced

    return run


@pytest.fixture
def traced() -> Callable[..., Traced]:
    """``traced(function, *args)``: only the Program."""
    return trace_call
