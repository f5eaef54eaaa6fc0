"""Torch's functions on what a transform of ``torch.func`` has wrapped: passed on, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.recording import transforms
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.fixture
def under(session: Session, made: Any) -> Callable[..., Any]:
    """What ``torch.func.vmap`` of a function gives for a tensor; the trace knows that a transform runs."""
    def call(function: Callable[..., Any], x: Tensor) -> Any:
        session.code.transforms += 1
        try:
            return made(torch.func.vmap(function), x)
        finally:
            session.code.transforms -= 1

    return call


def test_what_runs_below_is_recorded(session: Session, under: Any, given: Any, recorded: Any) -> None:
    y = under(lambda row: row * 2 + row.sum(), given("x", 2, 3))
    assert y.shape == (2, 3) and session.knows(y)
    assert {"aten.mul.Tensor", "aten.sum.dim_IntList", "aten.add.Tensor"} <= set(recorded())


def test_who_is_inside(session: Session, under: Any, given: Any) -> None:
    outside = given("y", 3)
    seen: list[Any] = []

    def look(row: Tensor) -> Tensor:
        seen.extend(transforms.is_inside(session, one) for one in (row, outside, 3))
        calls: list[Any] = [(([1, (row,)],), {}), ((outside,), {"out": row}), ((outside,), {})]
        seen.extend(transforms.is_under(session, *one) for one in calls)
        return row * 2

    under(look, given("x", 2, 3))
    assert seen == [True, False, False, True, True, False]
    assert not transforms.is_under(session, (outside,), {})


REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "item": (lambda row: row.sum().item(), ".item() takes a value out of a tensor"),
    "tolist": (lambda row: torch.Tensor.tolist(row), ".tolist() takes a value"),
    "condition": (lambda row: row if row.sum() > 0 else -row, ".__bool__() takes a value"),
    "index": (lambda row: [1, 2][row.sum().long()], ".__index__() takes a value"),
    "text": (lambda row: repr(row), ".__repr__() takes a value"),
    "equal": (lambda row: torch.equal(row, row), ".equal() takes a value"),
    "numpy": (lambda row: row.numpy(), ".numpy() takes a value"),
    "pointer": (lambda row: row.data_ptr(), ".data_ptr() takes a value"),
    "data": (lambda row: row.data, ".data of a tensor"),
    "leaf": (lambda row: row.is_leaf, ".is_leaf of a tensor"),
    "node": (lambda row: row.grad_fn, ".grad_fn of a tensor"),
    "gradient": (lambda row: row.grad, ".grad of a tensor"),
    "backward": (lambda row: row.sum().backward(), ".backward() of a tensor"),
    "hook": (lambda row: row.register_hook(print), ".register_hook() of a tensor"),
    "retain": (lambda row: row.retain_grad(), ".retain_grad() of a tensor"),
    "set": (lambda row: setattr(row, "requires_grad", True), ".requires_grad of a tensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_place_inside(name: str, under: Any, given: Any, refused: Any) -> None:
    call, said = REFUSED[name]
    with refused("D2S271", f'"{name}": (lambda', said=f"inside of what torch.func runs, {said}"):
        under(call, given("x", 2, 3))


def test_questions_about_metadata_are_answered(under: Any, given: Any) -> None:
    def look(row: Tensor) -> Tensor:
        assert row.shape == (3,) and row.dtype is torch.float32 and row.dim() == 1 and not row.requires_grad
        return row * row.shape[0]

    assert under(look, given("x", 2, 3)).shape == (2, 3)


def test_a_gradient_by_a_tensor_from_outside(session: Session, under: Any, given: Any, refused: Any) -> None:
    w = given("w", 3, requires_grad=True)
    with refused("D2S271", "torch.autograd.grad((row * w).sum(), w)", said="by a tensor from outside"):
        under(lambda row: torch.autograd.grad((row * w).sum(), w), given("x", 2, 3))
