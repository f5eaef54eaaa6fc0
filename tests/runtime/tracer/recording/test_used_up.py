"""Graphs that a gradient has used up: for whom that is an error, at once or in the run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import grad

from runtime.errors import TraceError
from runtime.ir import ScalarType
from runtime.tracer.memory.conditions import ALWAYS, NEVER, when
from runtime.tracer.memory.graph import UsedUp
from runtime.tracer.recording import gradients, used_up
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.fixture
def w(given: Any) -> Tensor:
    return given("w", 3, requires_grad=True)


def test_a_gradient_uses_up_what_it_goes_through(session: Session, w: Tensor, made: Any) -> None:
    y = made(lambda: (w * w).exp())
    side = made(lambda: (w * 3).sin())
    made(lambda: grad(y.sum(), w))
    (used,) = session.graph.used_up
    assert sorted(op.name for op in used.ops) == ["aten.exp.default", "aten.mul.Tensor", "aten.sum.default"]
    assert used.when is ALWAYS and used.where is not None and "grad(y.sum(), w)" in used.where.text
    leaves = gradients.leaves(session)
    assert used_up.met_when(session, y, leaves).always and used_up.met_when(session, side, leaves).never
    assert used_up.met_when(session, made(lambda: y.detach() * 2), leaves) is NEVER


def test_it_ends_where_the_gradient_is_asked_for(session: Session, w: Tensor, made: Any) -> None:
    h = made(lambda: w.exp())
    y = made(lambda: h.sin())
    made(lambda: grad(y.sum(), h))
    assert {op.name for op in session.graph.used_up[0].ops} == {"aten.sin.default", "aten.sum.default"}
    made(lambda: grad(h.sum(), w))
    with pytest.raises(TraceError, match="a second time"):
        made(lambda: grad(y.sum(), w))


def test_a_graph_that_is_retained_is_there(session: Session, w: Tensor, made: Any) -> None:
    y = made(lambda: (w * w).sum())
    made(lambda: grad(y, w, retain_graph=True))
    made(lambda: grad(y, w, create_graph=True))
    assert session.graph.used_up == ()
    made(lambda: grad(y, w))
    assert len(session.graph.used_up) == 1


def test_what_keeps_nothing_may_be_gone_through_again(session: Session, w: Tensor, made: Any) -> None:
    y = made(lambda: (w + 1).t().sum())
    made(lambda: (grad(y, w), grad(y, w)))
    assert len(session.graph.used_up) == 2
    assert used_up.met_when(session, y, gradients.leaves(session)) is NEVER


def test_a_second_gradient_is_an_error_here(w: Tensor, made: Any, refused: Any) -> None:
    y = made(lambda: (w * w).sum())
    made(lambda: grad(y, w))
    with refused("D2S213", "made(lambda: grad(y * 2, w))", said="through what the first one in line"):
        made(lambda: grad(y * 2, w))


def test_where_some_paths_asked_before_the_run_raises(session: Session, w: Tensor, made: Any, program: Any) -> None:
    y = made(lambda: (w * w).sum())
    flag = session.new_variable(ScalarType("bool"), "asked")
    ops = frozenset(session.program.block.ops)
    session.graph.used_up = (UsedUp(ops, None, when(flag), {}, steps=frozenset((op, True) for op in ops), sure=ops),)
    assert used_up.met_when(session, y, gradients.leaves(session)).cases == ((flag,),)
    made(lambda: grad(y, w))
    start = program().index("cond(%asked) {")
    assert program()[start + 1].startswith('raise("Trying to backward through the graph a second time')
    assert session.program.block.ops[-1].name == "gradients"


def test_a_loop_that_uses_up_what_came_before_it(session: Session, w: Tensor, made: Any) -> None:
    """Each iteration would: the loop is refused, if it carries what it is taken to carry."""
    y = made(lambda: (w * w).sum())
    with session.open("while_loop") as body:
        made(lambda: grad(y, w, retain_graph=True))
        assert body.refused is None
        made(lambda: grad((w * w).sum(), w))
        assert body.refused is None
        with session.open("cond"):
            made(lambda: grad(y, w))
        assert isinstance(body.refused, TraceError) and body.refused.code == "D2S213"


def test_what_leaves_the_function_without_its_graph(session: Session, w: Tensor, made: Any, recorded: Any) -> None:
    """It holds what it held; who asks for its gradient outside gets eager's error."""
    y = made(lambda: w * w)
    made(lambda: grad(y.sum(), w))
    leaves = gradients.leaves(session)
    recorded()
    found = used_up.returned(session, y, session.read(y), used_up.met_when(session, y, leaves), leaves)
    assert recorded() == ["aten.detach.default", "custom_grad"] and found.type == session.type_of(y)
    op = session.program.block.ops[-1]
    assert op.args[1:] == (session.read(w),) and op.outputs == (found,)
    raising, *_ = op.blocks[1].ops
    assert raising.name == "raise" and raising.args == (used_up.SECOND,)


def test_what_may_leave_the_function_without_its_graph(session: Session, w: Tensor, made: Any, recorded: Any) -> None:
    y = made(lambda: w * w)
    made(lambda: grad(y.sum(), w))
    recorded()
    flag = session.new_variable(ScalarType("bool"), "asked")
    found = used_up.returned(session, y, session.read(y), when(flag), gradients.leaves(session))
    op = session.program.block.ops[-1]
    assert recorded() == ["cond"] and op.args == (flag,) and op.outputs == (found,)
    assert [one.name for one in op.blocks[0].ops] == ["aten.detach.default", "custom_grad"]
    assert op.blocks[1].yields == [session.read(y)]


def test_the_words_are_eagers() -> None:
    real = torch.ones(3, requires_grad=True)
    y = (real * real).sum()
    y.backward()
    with pytest.raises(RuntimeError) as found:
        y.backward()
    assert found.value.args == (used_up.SECOND,)
