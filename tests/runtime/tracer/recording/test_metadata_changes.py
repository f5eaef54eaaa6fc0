"""Calls that change the shape of a tensor in place, or of what is given as ``out=``: what is told, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ir.views import HOLE
from runtime.tracer.memory import aliases
from runtime.tracer.memory.conditions import when
from runtime.tracer.recording import metadata_changes
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.mark.parametrize(
    ("name", "functional"),
    [
        ("aten.t_.default", "aten.t.default"),
        ("aten.unsqueeze_.default", "aten.unsqueeze.default"),
        ("aten.transpose_.default", "aten.transpose.int"),
        ("aten.squeeze_.dims", "aten.squeeze.dims"),
        ("aten.swapdims_.default", "aten.swapdims.default"),
        ("aten.resize_.default", None),
        ("aten.set_.source_Tensor", None),
        ("aten.nothing_of_that_name_.default", None),
    ],
)
def test_the_view_that_a_change_amounts_to(name: str, functional: str | None) -> None:
    assert metadata_changes.functional_view(name) == functional


CHANGES: dict[str, Callable[[Tensor], Any]] = {
    "t_": lambda y: y.t_(),
    "unsqueeze_": lambda y: y.unsqueeze_(1),
    "transpose_": lambda y: y.transpose_(0, 1),
    "swapaxes_": lambda y: y.swapaxes_(1, 0),
    "squeeze_": lambda y: y.unsqueeze_(0).squeeze_(),
    "as_strided_": lambda y: y.as_strided_((2, 2), (1, 1), 1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tensor_made_inside_becomes_another_view(name: str, session: Session, given: Any, made: Any) -> None:
    """Other views of its memory stay what they are, and a write through it reaches them."""
    y = made(lambda x: x * 2, given("x", 2, 3))
    other, storage = made(lambda: y[0]), session.info(y).storage
    made(CHANGES[name], y)
    real = torch.ones(2, 3)
    CHANGES[name](real)
    assert (y.shape, y.stride(), y.storage_offset()) == (real.shape, real.stride(), real.storage_offset())
    assert session.read(y).type == session.type_of(y) and session.info(y).storage is storage
    made(lambda: y.add_(1))
    assert session.info(other).storage is storage and session.read(other).type == session.type_of(other)


def test_the_step_of_a_change_has_its_numbers(session: Session, given: Any, made: Any) -> None:
    y = made(lambda x: (x * 2).transpose_(0, 1), given("x", 2, 3))
    assert [(step.name, step.args) for step in session.info(y).steps] == [("aten.transpose.int", (HOLE, 0, 1))]


def test_whose_shape_is_not_changed(session: Session, given: Any, made: Any, refused: Any) -> None:
    x = given("x", 2, 3)
    y = made(lambda: x * 2)
    with refused("D2S223", "x.t_()", said="of a tensor of the caller in place"):
        made(lambda: x.t_())
    with session.open("cond"):
        with refused("D2S223", "y.t_()", said="in place inside a branch or loop"):
            made(lambda: y.t_())
        z = made(lambda: y * 2)
        made(lambda: z.t_())
    assert (x.shape, y.shape, z.shape) == ((2, 3), (2, 3), (3, 2))


def test_a_history_is_that_of_the_shape_before(session: Session, given: Any, made: Any, refused: Any) -> None:
    y = made(lambda w: w * 2, given("w", 2, 3, requires_grad=True))
    with torch.no_grad(), refused("D2S223", "y.t_()", said="where gradients are switched off"):
        made(lambda: y.t_())
    with refused("D2S223", "y.as_strided_((2,), (1,))"):
        made(lambda: y.as_strided_((2,), (1,)))
    made(lambda: y.t_())
    assert y.shape == (3, 2)


def test_what_is_another_tensor_on_some_path(
    session: Session, given: Any, number: Any, made: Any, refused: Any
) -> None:
    x = given("x", 2, 3)
    y, z = made(lambda: (x * 2, x * 3))
    aliases.add(session.info(y).storage, session.info(z).storage, (), when(number("bool").var))
    for one in (y, z):
        with refused("D2S223", "one.t_()", said="of what is another tensor on some path"):
            made(lambda: one.t_())


def test_detach_in_place_of_views(session: Session, given: Any, made: Any, as_eager: Any, refused: Any) -> None:
    as_eager(lambda x: (x * 2)[1:].detach_(), torch.ones(3))
    made(lambda x: (x * 2)[1:].detach().detach_(), given("x", 3))
    view = session.inputs.add_input(torch.ones(3)[1:], "view")
    with refused("D2S221", "view.detach_()", said="of a view of the caller's"):
        made(lambda: view.detach_())


# -- out=


def test_out_has_its_new_shape(session: Session, given: Any, made: Any) -> None:
    x = given("x", 3)
    out = made(lambda: torch.empty(0))
    assert made(lambda: torch.add(x, x, out=out)) is out and out.shape == (3,)
    op = session.program.block.ops[-1]
    assert op.name == "update" and op.outputs[0].type == session.type_of(out)
    assert op.blocks[0].ops[0].name == "aten.add.out"
    given_out = given("out", 0)
    made(lambda: torch.add(x, x, out=given_out))
    assert given_out.shape == (3,)


RESIZED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "is a view of another tensor": (lambda x: torch.add(x, x, out=torch.empty(4)[4:]), "(0,)"),
    "shares its memory with other tensors": (
        lambda x: ((out := torch.empty(0)), (row := out[:]), torch.add(x, x, out=out), row), "(0,)"),
}  # fmt: skip


@pytest.mark.parametrize("why", RESIZED)
def test_out_that_others_see(why: str, given: Any, made: Any, recorded: Any, refused: Any) -> None:
    call, shape = RESIZED[why]
    with refused("D2S244", "out", said=f"the out= of add is resized from {shape}, and it {why}"):
        made(call, given("x", 3))
    assert "update" not in recorded()


def test_out_of_an_outer_block(session: Session, given: Any, made: Any, refused: Any) -> None:
    x, out = given("x", 3), made(lambda: torch.empty(0))
    with session.open("cond"), refused("D2S244", "torch.neg(x, out=out)", said="was made outside the branch or loop"):
        made(lambda: torch.neg(x, out=out))


def test_out_of_which_only_the_run_knows_whether_it_fits(given: Any, made: Any, refused: Any) -> None:
    x, some = given("x", 3), made(lambda x: x[x > 0], given("y", 3))
    shape = some.shape
    with refused("D2S244", "torch.add(x, x, out=some)", said="of which only the run knows"):
        made(lambda: torch.add(x, x, out=some))
    assert some.shape == shape, "it is put back"


def test_a_sparse_out(given: Any, made: Any, refused: Any) -> None:
    sparse = made(lambda x: x.to_sparse(), given("x", 3, 3))
    x = given("y", 3, 3)
    with refused("D2S240", "torch.add(x, x, out=sparse)"):
        made(lambda: torch.add(x, x, out=sparse))


def test_out_and_gradients(given: Any, made: Any, recorded: Any, as_eager: Any) -> None:
    as_eager(lambda w, out: torch.add(w, w, out=out), torch.ones(3, requires_grad=True), torch.ones(3))
    recorded()
    w, out = given("w", 3, requires_grad=True), given("out", 3)
    with torch.no_grad():
        made(lambda: torch.add(w, w, out=out))
    assert recorded() == ["update"]


def test_out_and_a_tensor_that_needs_a_gradient_on_some_paths(
    session: Session, given: Any, made: Any, recorded: Any
) -> None:
    y, out = made(lambda w: w * 2, given("w", 3, requires_grad=True)), given("out", 3)
    session.info(y).grad_in_some_runs = True
    recorded()
    made(lambda: torch.neg(y, out=out))
    assert recorded() == ["grad.needed", "cond", "update"]
    assert session.program.block.ops[-1].grad_mode == "off" and not session.info(out).requires_grad
