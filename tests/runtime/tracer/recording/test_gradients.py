"""``torch.autograd.grad`` and ``requires_grad_()`` in a trace: what is recorded, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import grad

from runtime.errors import TraceError
from runtime.tracer.recording import gradients
from runtime.tracer.recording.session import Session
from runtime.tracer.values.structure import Choice

Tensor = torch.Tensor


@pytest.fixture
def w(given: Any) -> Tensor:
    return given("w", 3, requires_grad=True)


@pytest.fixture
def v(given: Any) -> Tensor:
    return given("v", 3, requires_grad=True)


# -- torch.autograd.grad


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, (False, False, False)),
        ({"retain_graph": True}, (False, True, False)),
        ({"create_graph": True}, (True, True, False)),
        ({"create_graph": True, "retain_graph": False}, (True, False, False)),
        ({"materialize_grads": True}, (False, False, True)),
    ],
    ids=str,
)
def test_one_operator_for_a_gradient(
    options: dict[str, bool], told: tuple[bool, ...], session: Session, w: Tensor, made: Any, recorded: Any
) -> None:
    (g,) = made(lambda: grad((w * w).sum(), w, **options))
    op = session.program.block.ops[-1]
    assert recorded() == ["aten.mul.Tensor", "aten.sum.default", "gradients"]
    assert op.args == ([session.program.block.ops[1].outputs[0]], [session.read(w)], None)
    assert tuple(op.attrs[key] for key in ("create_graph", "retain_graph", "materialize_grads")) == told
    assert g.shape == (3,) and session.info(g).requires_grad is bool(options.get("create_graph"))


def test_a_gradient_that_is_given(session: Session, w: Tensor, v: Tensor, made: Any) -> None:
    made(lambda: grad((w * v, (w * 2).sum()), (v, w), (v, None)))
    op = session.program.block.ops[-1]
    assert op.args[1:] == ([session.read(v), session.read(w)], [session.read(v), None])
    assert [out.type for out in op.outputs] == [session.type_of(v), session.type_of(w)]


def test_whether_a_gradient_needs_one(session: Session, w: Tensor, v: Tensor, made: Any) -> None:
    """It does where it depends on what needs one; under ``no_grad`` none does."""
    one, other = made(lambda: grad((w * v + 2 * w).sum(), (w, v), create_graph=True))
    assert session.info(one).requires_grad and session.info(other).requires_grad
    (plain,) = made(lambda: grad((w * 2).sum(), w, create_graph=True))
    assert not session.info(plain).requires_grad
    y = made(lambda: (w * v).sum())
    with torch.no_grad():
        (off,) = made(lambda: grad(y, w, create_graph=True))
    assert not session.info(off).requires_grad


def test_what_a_gradient_does_not_reach(session: Session, w: Tensor, v: Tensor, made: Any, recorded: Any) -> None:
    found = made(lambda: grad((w * w).sum(), (v, w), allow_unused=True))
    assert found[0] is None and found[1].shape == (3,)
    assert session.program.block.ops[-2].args[1] == [session.read(w)]
    assert recorded()[2:] == ["gradients", "grad.required"], "in the run it may not be None, of which the user knows"
    assert made(lambda: grad((w * w).sum(), v, allow_unused=True)) == (None,)
    assert recorded() == ["aten.mul.Tensor", "aten.sum.default"]


def test_zeros_for_what_a_gradient_does_not_reach(
    session: Session, w: Tensor, v: Tensor, made: Any, recorded: Any
) -> None:
    zeros, _ = made(lambda: grad((w * w).sum(), (v, w), materialize_grads=True))
    assert recorded()[2:] == ["gradients", "aten.zeros_like.default"] and not session.info(zeros).requires_grad
    zeros, _ = made(lambda: grad((w * w).sum(), (v, w), create_graph=True, materialize_grads=True))
    assert session.info(zeros).requires_grad and recorded()[-1] == "grad.leaf"
    assert session.graph.zero_gradients == {session.read(zeros)}


def test_a_gradient_that_is_there_on_some_paths(
    session: Session, w: Tensor, v: Tensor, made: Any, recorded: Any
) -> None:
    """One of two values: a tensor, or None."""
    y = made(lambda: (w * v).sum())
    recorded()
    roots: gradients.Roots = [(y, None)]
    attrs = {"create_graph": False, "allow_unused": False, "retain_graph": False, "materialize_grads": False}
    one, other = gradients.emit(session, roots, [w, v], [True, False], attrs, [None, True])
    assert recorded() == ["gradients", "grad.required", "scalar.is_none", "grad.contiguous", "scalar.select"]
    assert session.program.block.ops[2].attrs["allow_unused"] is True and attrs["allow_unused"] is False
    assert isinstance(other, Choice) and other.options[1] is None
    assert session.info(one).requires_grad and session.info(one).grad_in_some_runs
    assert session.info(other.options[0]).requires_grad and not session.info(other.options[0]).grad_in_some_runs


EAGER: dict[str, Callable[[Tensor, Tensor, Tensor], Any]] = {
    "input without a gradient": lambda w, v, x: grad((w * w).sum(), x),
    "output without a gradient": lambda w, v, x: grad((x * x).sum(), w),
    "not used": lambda w, v, x: grad((w * w).sum(), (w, v)),
    "not used, said so": lambda w, v, x: grad((w * w).sum(), (w, v), allow_unused=False),
    "two options": lambda w, v, x: grad((w * w).sum(), w, allow_unused=False, materialize_grads=True),
    "several elements": lambda w, v, x: grad(w * w, w),
    "another shape": lambda w, v, x: grad(w * w, w, v[:2]),
    "another rank": lambda w, v, x: grad(w * w, w, v[None]),
    "too few gradients": lambda w, v, x: grad([w * w, w * 2], w, [v]),
    "complex and none given": lambda w, v, x: grad(w.sum() * 1j, w),
    "complex given for real": lambda w, v, x: grad(w * w, w, x.to(torch.complex64)),
    "real given for complex": lambda w, v, x: grad(w * 1j, w, x),
}


@pytest.mark.parametrize("name", EAGER)
def test_what_eager_refuses(name: str, session: Session, as_eager: Any) -> None:
    as_eager(EAGER[name], *(torch.ones(3, requires_grad=needs) for needs in (True, True, False)))
    assert all(op.name != "gradients" for op in session.program.block.ops)


REFUSED: dict[str, tuple[str, Callable[[Tensor], Any]]] = {
    "batched": ("D2S217", lambda w: grad(w * w, w, torch.ones(2, 3), is_grads_batched=True)),
    "text": ("D2S217", lambda w: grad((w * w).sum(), "w")),
    "twice": ("D2S213", lambda w: (y := (w * w).sum(), grad(y, w), grad(y, w))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_static_meaning(name: str, w: Tensor, made: Any, refused: Any) -> None:
    code, call = REFUSED[name]
    with refused(code, f'"{name}": ("{code}"'):
        made(call, w)


def test_through_what_was_written_since(w: Tensor, v: Tensor, made: Any, refused: Any) -> None:
    def written(y: Tensor) -> Any:
        loss = (y * y).sum()
        with torch.no_grad():
            y.add_(1)
        return grad(loss, y)

    leaf = made(lambda: torch.zeros(3, requires_grad=True))
    with refused("D2S213", "return grad(loss, y)", said="as it was before it was written in place"):
        made(written, leaf)
    with refused("D2S213", "return grad(loss, y)", said="goes through 'w' as it was"):
        made(written, w)
    made(lambda: grad((w * v).sum(), w))


def test_a_tensor_that_the_caller_computed_may_be_asked_for(session: Session, made: Any) -> None:
    y = session.inputs.add_input(torch.ones(3, requires_grad=True) * 2, "y")
    (g,) = made(lambda: grad((y * y).sum(), y))
    assert g.shape == (3,) and session.program.block.ops[-1].args[1] == [session.read(y)]


# -- requires_grad_


def test_a_new_start_of_a_graph(session: Session, given: Any, made: Any, recorded: Any) -> None:
    y = made(lambda x: x * 2, given("x", 3))
    old = session.info(y)
    assert made(lambda: y.requires_grad_()) is y
    assert recorded() == ["aten.mul.Tensor", "grad.leaf"] and session.graph.made_leaves
    info = session.info(y)
    assert info.requires_grad and info.steps == () and info.storage is not old.storage
    assert made(lambda: (y.is_leaf, y.requires_grad, y.grad_fn)) == (True, True, None)
    assert made(lambda: y.requires_grad_()) is y and recorded() == [], "it is one already"
    assert [one for one, _ in gradients.leaves(session)] == [y]
    assert list(gradients.starts(session)) == [session.read(y)]


def test_a_start_of_a_graph_that_is_none_any_more(session: Session, made: Any, recorded: Any) -> None:
    y = made(lambda: torch.zeros(3, requires_grad=True))
    made(lambda: y.requires_grad_(False))
    assert recorded() == ["aten.zeros.default", "grad.leaf", "aten.detach.default"]
    assert not session.info(y).requires_grad and gradients.leaves(session) == []


def test_memory_before_and_after_may_be_written_no_more(session: Session, given: Any, made: Any, refused: Any) -> None:
    """The view taken before and the tensor are the same memory, of which the trace knows nothing any more."""
    y = made(lambda x: x * 2, given("x", 3))
    row = made(lambda: y[0])
    made(lambda: y.requires_grad_())
    with refused("D2S222", "row.add_(1)"):
        made(lambda: row.add_(1))


FLAGS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "integers": lambda w, x: (x > 0).long().requires_grad_(),
    "off a result": lambda w, x: (w * 2).requires_grad_(False),
    "off a view": lambda w, x: w[1:].requires_grad_(False),
    "off a result, set": lambda w, x: setattr(w * 2, "requires_grad", False),
    "on a result, set": lambda w, x: setattr(w * 2, "requires_grad", True),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_that_eager_does_not_set(name: str, as_eager: Any) -> None:
    as_eager(FLAGS[name], torch.ones(3, requires_grad=True), torch.ones(3))


def test_flags_of_the_callers_tensors(w: Tensor, given: Any, made: Any, recorded: Any, refused: Any) -> None:
    x = given("x", 3)
    with refused("D2S213", "x.requires_grad_()", said="changes an argument"):
        made(lambda: x.requires_grad_())
    with refused("D2S213", "w.requires_grad_(False)"):
        made(lambda: w.requires_grad_(False))
    made(lambda: (w.requires_grad_(), x.requires_grad_(False)))
    assert recorded() == [], "as they are"


def test_flags_that_depend_on_the_path(session: Session, w: Tensor, made: Any, recorded: Any, refused: Any) -> None:
    y = made(lambda: w * 2)
    session.info(y).grad_in_some_runs = True
    with refused("D2S213", "y.requires_grad_()", said="on some paths only"):
        made(lambda: y.requires_grad_())
    with refused("D2S213", "y.requires_grad_(False)"):
        made(lambda: y.requires_grad_(False))
    recorded()
    flag = made(lambda: y.requires_grad)
    assert type(flag).__name__ == "StagedBool" and recorded() == ["grad.needed"]


def test_leaves_are_those_of_the_graph(session: Session, w: Tensor, v: Tensor, given: Any, made: Any) -> None:
    given("x", 3)
    session.inputs.add_input(torch.ones(3, requires_grad=True) * 2, "computed")
    parameter = torch.nn.Parameter(torch.ones(3))
    made(lambda: parameter * w)
    inner, row = made(lambda: ((leaf := torch.zeros(3, requires_grad=True)), leaf[0]))
    assert {id(one) for one, _ in gradients.leaves(session)} == {id(one) for one in (parameter, w, v, inner)}
    assert session.knows(row)


def test_the_error_of_a_gradient_is_an_error_of_the_trace(w: Tensor, made: Any) -> None:
    with pytest.raises(TraceError, match="a second time through what the first one in line"):
        made(REFUSED["twice"][1], w)
