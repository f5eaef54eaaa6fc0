"""The oracle: a function run eagerly and as a Program gives the same values, types, effects and exceptions."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import operators
from runtime.executor import compile_program
from runtime.ir.verify import verify
from runtime.tracer import flatten, trace
from runtime.tracer.boundary.tracing import Traced


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
    traced.executable = compile_program(traced.program, exceptions=traced.raised)
    return traced


def outcome(run: Callable[[], Any]) -> tuple[Any, str]:
    """The result or exception, and what was printed."""
    torch.manual_seed(0)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = run()
        except Exception as error:
            result = error
    return result, printed.getvalue()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Exception):
        return type(a) is type(b) and str(a) == str(b)
    if isinstance(a, torch.Tensor):
        return (
            isinstance(b, torch.Tensor)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and torch.equal(a.nan_to_num(), b.nan_to_num())
            and a.requires_grad == b.requires_grad
        )
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or a != a and b != b)


@pytest.fixture
def check() -> Callable[..., Traced]:
    """``check(function, first, *others)``: one Program, traced with the first argument, right for every one."""

    def run(function: Any, *inputs: Any, dynamic: dict[str, frozenset[int]] | None = None) -> Traced:
        calls = [one if isinstance(one, tuple) else (one,) for one in inputs]
        traced = trace_call(function, *copy.deepcopy(calls[0]), dynamic=dynamic)
        for args in calls:
            mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
            expected = outcome(lambda: function(*mine))
            actual = outcome(lambda: traced.call(flatten(bind(function, theirs))))
            assert same(expected[0], actual[0]), f"for {args}: eager gives {expected[0]!r}, the Program {actual[0]!r}"
            assert expected[1] == actual[1]
            assert same(list(mine), list(theirs)), f"for {args}: eager leaves {mine}, the Program {theirs}"
        return traced

    return run


@pytest.fixture
def traced() -> Callable[..., Traced]:
    """``traced(function, *args)``: only the Program."""
    return trace_call
