"""The names of autograd's nodes in texts of tensors: those that eager shows, also where paths decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from runtime.ir import Block, ScalarType, Variable
from runtime.tracer.memory.deferred import PathEnd
from runtime.tracer.recording import histories
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


def written(w: Tensor) -> Tensor:
    y = w * 2
    return y.add_(1)


def view_of_what_was_written(w: Tensor) -> Tensor:
    y = w * 2
    y.mul_(2)
    return y[1:]


def view_whose_memory_was_written(w: Tensor) -> Tensor:
    y = w * 2
    row = y[1:]
    y.mul_(2)
    return row


def written_through_a_view(w: Tensor) -> Tensor:
    y = w * 2
    y[1:].mul_(2)
    return y


def turned_in_place(w: Tensor) -> Tensor:
    return (w * 2).unsqueeze_(0)


def batch_normalised(w: Tensor) -> Tensor:
    return F.batch_norm(w.expand(4, 3), torch.zeros(3), torch.ones(3), training=True)


def without_gradients(w: Tensor) -> Tensor:
    y = w * 2
    with torch.no_grad():
        return y + 1


NAMED: list[Callable[[Tensor], Tensor]] = [
    lambda w: w * 2, lambda w: w - 1, lambda w: w.sum(), lambda w: w.view(3, 1), lambda w: w[1], lambda w: w.t(),
    lambda w: w.unbind()[0], lambda w: w.max(0)[0], lambda w: w**2, lambda w: w**3.5, lambda w: F.gelu(w),
    lambda w: F.linear(w[None], w[None]), lambda w: F.linear(w[None], w[None], w[:1]), lambda w: w @ w,
    lambda w: w.double(), lambda w: torch.where(w > 0, w, 0), lambda w: torch.cat([w, w]), lambda w: F.softmax(w, 0),
    lambda w: F.layer_norm(w, [3]), lambda w: w.clone(), lambda w: w.expand(2, 3), written, view_of_what_was_written,
    view_whose_memory_was_written, written_through_a_view, turned_in_place, batch_normalised,
]  # fmt: skip


@pytest.mark.parametrize("call", NAMED)
def test_the_node_is_eagers(call: Callable[[Tensor], Tensor], session: Session, given: Any, made: Any) -> None:
    real = call(torch.ones(3, requires_grad=True))
    tensor = made(call, given("w", 3, requires_grad=True))
    var = histories.shown(session, tensor)
    needed, named = session.program.block.ops[-2:]
    assert (needed.name, named.name) == ("grad.needed", "grad.named") and named.outputs == (var,)
    assert named.args == (session.read(tensor), type(real.grad_fn).__name__, needed.outputs[0])


def test_what_has_no_history_is_shown_as_it_is(session: Session, given: Any, made: Any, recorded: Any) -> None:
    x, w = given("x", 3), given("w", 3, requires_grad=True)
    plain = made(lambda: x * 2)
    off = made(without_gradients, w)
    recorded()
    assert [histories.shown(session, one) for one in (plain, off, x)] == [session.read(one) for one in (plain, off, x)]
    assert histories.shown(session, w) is session.read(w), "the caller's tensor has its own"
    assert recorded() == []


def test_what_is_detached_from_its_base(session: Session, given: Any, made: Any) -> None:
    """A Program need not tell that, so the text says it."""
    y = made(lambda w: w.detach(), given("w", 3, requires_grad=True))
    histories.shown(session, y)
    op = session.program.block.ops[-1]
    assert op.name == "grad.named" and op.args == (session.read(y), "leaf", False)


def test_leaves_made_inside(session: Session, given: Any, made: Any) -> None:
    leaf = made(lambda: torch.zeros(3, requires_grad=True))
    histories.shown(session, leaf)
    assert session.program.block.ops[-1].args[1] == "leaf"


def test_that_a_text_was_asked_for(session: Session, given: Any, made: Any) -> None:
    """Whether gradients are enabled is a guard then; not for the caller's own tensors."""
    w = given("w", 3, requires_grad=True)
    histories.shown(session, w)
    assert not session.outside.asks_gradients
    histories.shown(session, made(lambda: w * 2))
    assert session.outside.asks_gradients


def test_a_node_that_nobody_knows(session: Session, given: Any, made: Any, refused: Any) -> None:
    w = given("w", 3, requires_grad=True)
    (g,) = made(lambda: torch.autograd.grad((w * w * w).sum(), w, create_graph=True))
    with refused("D2S243", "histories.shown(session, g)", said="which is not known: it comes from torch.autograd.grad"):
        histories.shown(session, g)


def branch(session: Session, made: Any, *calls: Callable[[], Tensor]) -> Tensor:
    """The result of a ``cond`` whose paths are noted, as the tracer does."""
    blocks, ends = [], []
    for call in calls:
        with session.open("cond") as scope:
            result = made(call)
            scope.block.yields = [session.read(result)]
        blocks.append(scope.block)
        ends.append(PathEnd(scope, False))
    flag = session.new_variable(ScalarType("bool"), "flag")
    op = session.emit_operator("cond", [flag], types=[session.type_of(result)], blocks=blocks)
    session.looks.path_ends[op] = tuple(ends)
    return session.fresh(session.clone_meta(result), op.outputs[0], requires_grad=True)


def named(session: Session) -> Any:
    (op,) = [op for op in session.program.block.ops if op.name == "grad.named"]
    return op.args[1]


def test_paths_of_one_name(session: Session, given: Any, made: Any) -> None:
    w = given("w", 3, requires_grad=True)
    histories.shown(session, branch(session, made, lambda: w * 2, lambda: w * 3))
    assert named(session) == "MulBackward0" and len(session.program.block.ops[0].outputs) == 1


def test_paths_of_two_names(session: Session, given: Any, made: Any) -> None:
    """The name comes out of the branch beside the tensor, once a text asks for it."""
    w = given("w", 3, requires_grad=True)
    y = branch(session, made, lambda: w * 2, lambda: w.exp())
    op = session.program.block.ops[0]
    assert len(op.outputs) == 1
    histories.shown(session, y)
    assert isinstance(named(session), Variable) and named(session) is op.outputs[1]
    assert [block.yields[1] for block in op.blocks] == ["MulBackward0", "ExpBackward0"]


def test_a_path_that_gives_the_callers_tensor(session: Session, given: Any, made: Any) -> None:
    """Its own name is asked of it in the run."""
    w = given("w", 3, requires_grad=True)
    histories.shown(session, branch(session, made, lambda: w, lambda: w.exp()))
    op = session.program.block.ops[0]
    own, other = (block.yields[1] for block in op.blocks)
    asking = op.blocks[0].ops[-1]
    assert asking.name == "grad.history" and own is asking.outputs[0] and other == "ExpBackward0"


def test_asking_a_stand_in(session: Session, given: Any, made: Any) -> None:
    """What is said of an Operator's results, whatever only the run knows; None where that decides."""
    w = given("w", 3, requires_grad=True)
    made(lambda: w * 2)
    product = session.program.block.ops[-1]
    var = session.read(w)
    assert histories.on_stand_ins(session, product, var, lambda outs, _: outs[0].requires_grad) is True
    assert histories.on_stand_ins(session, product, var, lambda outs, given: outs[0] is given[var]) is False
    assert histories.on_stand_ins(session, product, var, lambda outs, given: 1 / 0) is None
    session.emit("cond", [True], types=[], blocks=[Block(), Block()])
    assert histories.on_stand_ins(session, session.program.block.ops[-1], var, lambda *_: True) is None


def test_asking_a_stand_in_with_a_number_of_the_run(session: Session, given: Any, number: Any, made: Any) -> None:
    w, n = given("w", 3, requires_grad=True), number()
    made(lambda: w * n)
    op, var = session.program.block.ops[-1], session.read(w)
    assert histories.on_stand_ins(session, op, var, lambda outs, _: True) is True
    assert histories.on_stand_ins(session, op, var, lambda outs, given: given[n.var] > 1) is None
