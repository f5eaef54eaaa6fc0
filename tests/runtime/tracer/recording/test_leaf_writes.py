"""In-place writes to tensors with which a graph begins: refused where gradients are recorded, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ir import ScalarType
from runtime.tracer.memory.conditions import ALWAYS, NEVER
from runtime.tracer.memory.deferred import Needed
from runtime.tracer.recording import leaf_writes
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor

EAGER: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "leaf": lambda w, x: w.add_(1),
    "leaf, by a tensor": lambda w, x: w.copy_(x),
    "item": lambda w, x: w.__setitem__(0, 1.0),
    "view": lambda w, x: w[1:].mul_(2),
    "view of a view": lambda w, x: w[1:][0].zero_(),
    "out": lambda w, x: torch.add(x, x, out=w),
    "out of one that takes none": lambda w, x: torch.neg(w, out=x),
    "made inside": lambda w, x: torch.zeros(3, requires_grad=True).add_(x),
    "what gave it back": lambda w, x: w.float().add_(1),
    "shape of a view": lambda w, x: w[1:].unsqueeze_(0),
}


@pytest.mark.parametrize("name", EAGER)
def test_what_eager_refuses(name: str, session: Session, as_eager: Any) -> None:
    as_eager(EAGER[name], torch.ones(3, requires_grad=True), torch.ones(3))
    assert all(op.name != "update" for op in session.program.block.ops)


def unrecorded(call: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    return torch.no_grad()(call)


TAKEN: dict[str, Callable[[Tensor], Any]] = {
    "without gradients": unrecorded(lambda w: w.add_(1)),
    "detached": lambda w: w.detach().add_(1),
    "data": lambda w: w.data.add_(1),
    "detached view": lambda w: w.detach()[1:].add_(1),
    "not of autograd": lambda w: w.logical_not_(),
    "result": lambda w: (w * 2).add_(1),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_eager_takes(name: str, given: Any, made: Any, recorded: Any) -> None:
    TAKEN[name](torch.ones(3, requires_grad=True))
    made(TAKEN[name], given("w", 3, requires_grad=True))
    assert recorded()[-1] == "update"


def test_that_an_argument_is_a_leaf_is_a_fact(session: Session, made: Any) -> None:
    leaf = session.inputs.add_input(torch.ones(3, requires_grad=True), "leaf")
    result = session.inputs.add_input(torch.ones(3, requires_grad=True) * 2, "result")
    plain = session.inputs.add_input(torch.ones(3), "plain")
    first = session.read(result)
    made(lambda: (result.add_(1), plain.add_(1)))
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        made(lambda: leaf.add_(1))
    assert session.inputs.leaves == {session.info(leaf).storage.origin: True, first: False}


def test_a_tensor_that_is_a_leaf_on_some_paths(session: Session, given: Any, made: Any, refused: Any) -> None:
    """One that ``requires_grad_()`` made; nobody can say in the run whether to raise."""
    leaf, w = made(lambda: torch.zeros(3, requires_grad=True)), given("w", 3, requires_grad=True)
    blocks = []
    for call in (lambda: leaf, lambda: w * 2):
        with session.open("cond") as scope:
            scope.block.yields = [session.read(made(call))]
        blocks.append(scope.block)
    flag = session.new_variable(ScalarType("bool"))
    (out,) = session.emit("cond", [flag], types=[session.type_of(leaf)], blocks=blocks)
    joined = session.fresh(session.clone_meta(leaf), out, requires_grad=True)
    with refused("D2S213", "joined.add_(1)", said="a leaf Variable on some paths only"):
        made(lambda: joined.add_(1))


# -- views without a history


def test_when_a_new_view_has_no_history(session: Session, given: Any, made: Any) -> None:
    x, w = given("x", 3), given("w", 3, requires_grad=True)
    view, detached = made(lambda: (x[1:], w.detach()))
    step, detaching = session.info(view).steps[-1], session.info(detached).steps[-1]
    plain, needing = session.info(x), session.info(w)
    assert leaf_writes.bare(plain, step, False) is ALWAYS and leaf_writes.bare(needing, step, True) is NEVER
    assert leaf_writes.bare(plain, detaching, False) is NEVER, "it is no view to autograd"
    with torch.no_grad():
        assert leaf_writes.bare(plain, step, False) is NEVER
    needing.grad_in_some_runs = True
    assert leaf_writes.bare(needing, step, True).cases == ((Needed(session.read(w), negated=True),),)


def test_a_view_gets_its_memorys_history_when_it_is_read_or_written(
    session: Session, given: Any, made: Any
) -> None:
    v = given("v", 2, requires_grad=True)
    base = made(lambda: torch.zeros(3))
    row, other = made(lambda: (base[1:], base[:2]))
    assert session.graph.bare[session.info(row)] is ALWAYS
    made(lambda: row.mul_(v))
    assert session.graph.bare[session.info(row)] is NEVER and session.graph.bare[session.info(other)] is ALWAYS
    made(lambda: other * 2)
    assert session.graph.bare[session.info(other)] is NEVER


def test_a_view_whose_memory_got_a_history_is_taken_for_a_leaf(session: Session, as_eager: Any) -> None:
    def write(v: Tensor) -> None:
        base = torch.zeros(3)
        row = base[1:]
        base.mul_(v)
        row.add_(1)

    as_eager(write, torch.ones(3, requires_grad=True))


def test_what_out_says_of_a_leaf(session: Session, given: Any) -> None:
    w, x = given("w", 3, requires_grad=True), given("x", 3)
    out, inplace = torch.ops.aten.add.out, torch.ops.aten.add_.Tensor
    assert leaf_writes.of_out(session, inplace, [w, x], {}) is None
    said = leaf_writes.of_out(session, out, [x, x], {"out": w})
    assert said is not None and said.startswith("add(): functions with out=... arguments don't support automatic")
