"""What gradients with a history are made of: the nodes of autograd's formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import grad

from runtime.tracer.recording.gradient_paths import FORMULA, reached
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.fixture
def x(given: Any) -> Tensor:
    return given("x", 3, requires_grad=True)


@pytest.fixture
def w(given: Any) -> Tensor:
    return given("w", 3, requires_grad=True)


FORMULAS = {
    "x * w": ("w", True), "x + w": ("", False), "x * 2": ("", False), "x.exp()": ("x", True), "x ** 2 + w": ("x", True),
    "(x * w).exp()": ("xw", True), "(x + w) * w": ("w", True), "x.detach() * x": ("", False), "x / w": ("w", True),
    "torch.where(x > 0, x, w)": ("", False), "x.cumsum(0) * w": ("w", True), "w.exp() * x": ("w", True),
    "x.softmax(0)": ("x", True), "torch.lerp(x, w, 0.5)": ("", False), "torch.max(x, w)": ("", False),
}  # fmt: skip
"""By function: of which arguments its gradient by x is made, and whether autograd keeps something for that."""


@pytest.mark.parametrize("text", FORMULAS)
def test_a_gradient_is_made_of(text: str, session: Session, x: Tensor, w: Tensor, made: Any) -> None:
    made_of, keeps = FORMULAS[text]
    y = made(lambda: eval(text, {"x": x, "w": w, "torch": torch}))
    g = made(lambda: grad(y.sum(), x, create_graph=True))[0]
    paths = reached(session, [session.read(g)], [session.read(x), session.read(w)])
    assert "".join(name for name, one in (("x", x), ("w", w)) if session.read(one) in paths.found) == made_of
    assert any(op.name != FORMULA or op.attrs["keeps"] for op in paths.through) == keeps
    real = {"x": torch.rand(3, requires_grad=True), "w": torch.rand(3, requires_grad=True), "torch": torch}
    again = grad(eval(text, real).sum(), real["x"], create_graph=True)[0]
    if again.requires_grad:
        theirs = grad(again.sum(), [real["x"], real["w"]], allow_unused=True)
        assert "".join(name for name, one in zip("xw", theirs) if one is not None) == made_of
    else:
        assert made_of == ""


def test_a_given_gradient_is_in_it(session: Session, x: Tensor, w: Tensor, made: Any) -> None:
    y = made(lambda: x * 2)
    g = made(lambda: grad(y, x, w, create_graph=True))[0]
    paths = reached(session, [session.read(g)], [session.read(x), session.read(w)])
    assert session.read(w) in paths.found and session.read(x) not in paths.found


def test_an_operator_that_keeps_nothing_may_be_gone_through_twice(x: Tensor, made: Any, session: Session) -> None:
    """Not all of them are in a list: one that is not is asked on stand-ins."""
    y = made(lambda: x.cumsum(0).flip(0).sum())
    made(lambda: (grad(y, x), grad(y, x)))
    assert len(session.graph.used_up) == 2
