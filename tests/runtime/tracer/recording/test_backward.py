"""``loss.backward()`` in a trace: which leaves get a gradient, and how it comes to what is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ir import ScalarType
from runtime.tracer.recording import backward, leaf_gradients
from runtime.tracer.recording.session import Session
from runtime.tracer.values.structure import Choice

Tensor = torch.Tensor


@pytest.fixture
def w(given: Any) -> Tensor:
    return given("w", 3, requires_grad=True)


@pytest.fixture
def v(given: Any) -> Tensor:
    return given("v", 3, requires_grad=True)


def test_what_is_reached_gets_a_gradient(session: Session, w: Tensor, v: Tensor, made: Any, recorded: Any) -> None:
    made(lambda: (w * w).sum().backward())
    assert recorded() == ["aten.mul.Tensor", "aten.sum.default", "gradients", "aten.contiguous.default"]
    (op,) = [one for one in session.program.block.ops if one.name == "gradients"]
    assert op.args[1] == [session.read(w)] and op.attrs == {
        "create_graph": False, "allow_unused": False, "retain_graph": False, "materialize_grads": False,
    }  # fmt: skip
    w_grad, v_grad = made(lambda: (w.grad, v.grad))
    assert w_grad.shape == (3,) and not session.info(w_grad).requires_grad and v_grad is None


def test_a_gradient_is_added_to_one_that_is_there(session: Session, w: Tensor, made: Any, recorded: Any) -> None:
    made(lambda: (w * w).sum().backward())
    first = made(lambda: w.grad)
    recorded()
    made(lambda: (w * 2).sum().backward())
    assert made(lambda: w.grad) is first
    assert recorded() == ["aten.mul.Tensor", "aten.sum.default", "gradients", "update"]
    assert session.program.block.ops[-1].blocks[0].ops[-1].name == "aten.add_.Tensor"
    assert session.program.block.ops[-1].grad_mode == "off"


def test_only_the_inputs_that_are_named(session: Session, w: Tensor, v: Tensor, made: Any) -> None:
    made(lambda: (w * v).sum().backward(inputs=[v]))
    assert made(lambda: (w.grad, v.grad is None)) == (None, False)
    made(lambda: backward.backward((w * v).sum(), inputs=w))
    assert made(lambda: w.grad is None) is False


def test_an_input_that_is_not_reached_keeps_none(w: Tensor, v: Tensor, made: Any, recorded: Any) -> None:
    made(lambda: (w * w).sum().backward(inputs=v))
    assert made(lambda: (w.grad, v.grad)) == (None, None) and "gradients" not in recorded()


def test_a_result_keeps_a_gradient_where_it_is_retained(session: Session, w: Tensor, made: Any) -> None:
    def kept() -> list[bool]:
        y, z = w * 2, w.exp()
        y.retain_grad()
        (y * z).sum().backward()
        return [one.grad is None for one in (w, y)]

    assert made(kept) == [False, False]
    op = next(one for one in session.program.block.ops if one.name == "gradients")
    assert len(op.args[1]) == 2 and op.args[1][0] == session.read(w)  # type: ignore[arg-type, index]


def test_a_leaf_that_some_paths_reach(session: Session, w: Tensor, v: Tensor, made: Any, recorded: Any) -> None:
    """Its gradient is a tensor or None."""
    blocks = []
    for call in (lambda: (w * v).sum(), lambda: w.sum()):
        with session.open("cond") as scope:
            scope.block.yields = [session.read(made(call))]
        blocks.append(scope.block)
    (out,) = session.emit("cond", [session.new_variable(ScalarType("bool"))], types=[scope.block.yields[0].type],
                          blocks=blocks)  # type: ignore[union-attr]  # fmt: skip
    loss = session.fresh(session.clone_meta(made(lambda: w.sum())), out, requires_grad=True)
    recorded()
    made(loss.backward)
    w_grad, v_grad = leaf_gradients.read(session, w), leaf_gradients.read(session, v)
    assert isinstance(w_grad, Tensor) and isinstance(v_grad, Choice)
    assert session.program.block.ops[-1].name != "gradients" and "grad.required" in recorded()


EAGER: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "no gradient": lambda w, x: (x * 2).sum().backward(),
    "several elements": lambda w, x: (w * 2).backward(),
    "empty inputs": lambda w, x: w.sum().backward(inputs=[]),
    "input without a gradient": lambda w, x: w.sum().backward(inputs=[x]),
    "another shape": lambda w, x: (w * 2).backward(x[:2]),
}


@pytest.mark.parametrize("name", EAGER)
def test_what_eager_refuses(name: str, session: Session, as_eager: Any) -> None:
    as_eager(EAGER[name], torch.ones(3, requires_grad=True), torch.ones(3))
    assert all(op.name != "gradients" for op in session.program.block.ops) and session.graph.used_up == ()


def test_a_graph_of_the_gradient_is_refused(w: Tensor, made: Any, refused: Any) -> None:
    with refused("D2S217", "backward(create_graph=True)"):
        made(lambda: w.sum().backward(create_graph=True))


def test_back_to_what_the_caller_computed(session: Session, w: Tensor, made: Any, refused: Any) -> None:
    """That has a graph outside, which would get its share."""
    y = session.inputs.add_input(torch.ones(3, requires_grad=True) * 2, "y")
    with refused("D2S213", "backward()", said="what the caller computed an argument of"):
        made(lambda: (w * y).sum().backward())
    made(lambda: (w * y.detach()).sum().backward())


def test_the_old_name_for_given_gradients(session: Session, w: Tensor, given: Any, made: Any) -> None:
    x = given("x", 3)
    made(lambda: backward.backward(w * 2, grad_variables=x))
    op = next(one for one in session.program.block.ops if one.name == "gradients")
    assert op.args[2] == [session.read(x)]
