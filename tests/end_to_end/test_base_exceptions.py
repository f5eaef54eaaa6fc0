"""Exceptions that are no ``Exception``: a tensor decides whether they are raised, as of any other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import same


class Stop(BaseException):
    pass


class Tail(BaseException):
    def __init__(self, held: Any) -> None:
        self.held = held


def stops(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        raise Stop("now")
    return x


def leaves(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        sys.exit(3)
    return x


def caught_around_a_call(x: torch.Tensor) -> Any:
    try:
        return stops(x)
    except Stop as error:
        return x * 2, str(error)


def caught_here(x: torch.Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise Stop
        return x
    except Stop:
        return x * 2


def exit_is_caught(x: torch.Tensor) -> Any:
    try:
        return leaves(x)
    except SystemExit as error:
        return x * 2, error.code


def exit_is_no_exception(x: torch.Tensor) -> Any:
    try:
        return leaves(x)
    except Exception:
        return x * 5


def interrupts(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        raise KeyboardInterrupt
    return x


def in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for i in range(int(x.abs().sum())):
        if x.sum() > i + 1:
            raise Stop(i)
    return x


def out_of_a_loop(x: torch.Tensor) -> Any:
    try:
        return in_a_loop(x)
    except BaseException as error:
        return x * 3, type(error).__name__


def with_a_tensor(x: torch.Tensor) -> Any:
    def inner(t: torch.Tensor) -> torch.Tensor:
        if t.sum() > 0:
            raise Tail(t * 3)
        return t

    try:
        return inner(x)
    except Tail as error:
        return error.held


def finally_runs(x: torch.Tensor) -> Any:
    seen = []
    try:
        stops(x)
    except Stop:
        seen.append(1)
    finally:
        seen.append(2)
    return x, seen


FUNCTIONS = [
    stops, leaves, caught_around_a_call, caught_here, exit_is_caught, exit_is_no_exception, interrupts, in_a_loop,
    out_of_a_loop, with_a_tensor, finally_runs,
]  # fmt: skip
XS = (torch.ones(3), -torch.ones(3), torch.full((3,), 0.3))


def outcome(function: Callable[..., Any], x: torch.Tensor) -> Any:
    try:
        return function(x)
    except BaseException as error:
        return type(error), error.args


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)], ids=str)
@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_raised_where_eager_raises(function: Callable[..., Any], full_graph: bool, order: tuple[int, ...]) -> None:
    static = to_static(function, full_graph=full_graph)
    for place in order:
        same(outcome(static, XS[place]), outcome(function, XS[place]))


def test_a_file_does_not_end_the_process(tmp_path: Path) -> None:
    """A loaded Program may raise errors, not leave the process of who loads it."""
    spec = [dy2static.InputSpec([3], torch.float32, "x")]
    with pytest.raises(Dy2StaticError) as error:
        dy2static.save(to_static(leaves, input_spec=spec), tmp_path / "leaves")
    assert error.value.code == "D2S515" and not list(tmp_path.iterdir())
