"""Views that autograd does not let be written: eager's words where one is, or where its memory was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ir.views import HOLE
from runtime.torch_internals import node_in_messages
from runtime.tracer.memory.storage_table import RecordedStep
from runtime.tracer.recording import nonwritable_views
from runtime.tracer.recording.nonwritable_views import Rows
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


def in_no_grad(call: Callable[..., Any]) -> Any:
    with torch.no_grad():
        return call()


def unbound(w: Tensor) -> Any:
    (w * 2).unbind()[1].add_(1)


def split(w: Tensor) -> Any:
    (w * 2).split([1, 2])[1].mul_(w[:2])


def chunked(w: Tensor) -> Any:
    (w * 2).chunk(2)[0].zero_()


def view_of_a_row(w: Tensor) -> Any:
    (w * 2).unbind()[2].view(1).add_(1)


def row_of_what_has_no_history(w: Tensor) -> Any:
    torch.zeros(3).unbind()[0].mul_(w[0])


def without_gradients(w: Tensor) -> Any:
    y = w * 2
    in_no_grad(lambda: y[1:]).add_(1)


def without_gradients_of_plain(w: Tensor) -> Any:
    in_no_grad(lambda: torch.zeros(3)[1:]).mul_(w[1:])


def view_of_a_view_without_gradients(w: Tensor) -> Any:
    y = w * 2
    in_no_grad(lambda: y[1:])[0].add_(1)


def shape_of_a_row(w: Tensor) -> Any:
    (w.view(3, 1) * 2).unbind()[0].unsqueeze_(0)


def read_after_the_base_was_written(w: Tensor) -> Any:
    y = w * 2
    row, *_ = y.unbind()
    y.mul_(2)
    return row + 1


def read_after_another_view_was_written(w: Tensor) -> Any:
    y = w * 2
    row, *_ = y.unbind()
    y[2:].mul_(2)
    return row + 1


def read_after_its_base_got_a_history(w: Tensor) -> Any:
    y = torch.zeros(3)
    part = in_no_grad(lambda: y[1:])
    y.mul_(w)
    return part + 1


def shape_after_the_base_was_written(w: Tensor) -> Any:
    y = w * 2
    row, *_ = y.unbind()
    y.mul_(2)
    return row.view(1)


EAGER = [
    unbound, split, chunked, view_of_a_row, row_of_what_has_no_history, without_gradients, without_gradients_of_plain,
    view_of_a_view_without_gradients, shape_of_a_row, read_after_the_base_was_written,
    read_after_another_view_was_written, read_after_its_base_got_a_history, shape_after_the_base_was_written,
]  # fmt: skip


@pytest.mark.parametrize("call", EAGER, ids=lambda call: call.__name__)
def test_what_eager_refuses(call: Callable[[Tensor], Any], as_eager: Any) -> None:
    as_eager(call, torch.ones(3, requires_grad=True))


TAKEN: dict[str, Callable[[Tensor], Any]] = {
    "one row of select": lambda w: (w * 2)[1].add_(1),
    "a row without gradients": lambda w: in_no_grad(lambda: (w * 2).unbind()[0].add_(1)),
    "a row that is detached": lambda w: (w * 2).unbind()[0].detach().add_(1),
    "rows of what needs none": lambda w: w.detach().clone().unbind()[0].add_(1),
    "a row before the write": lambda w: ((y := w * 2).unbind()[0] + 1, y.mul_(2)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_eager_takes(name: str, given: Any, made: Any) -> None:
    TAKEN[name](torch.ones(3, requires_grad=True))
    made(TAKEN[name], given("w", 3, requires_grad=True))


# -- views of which autograd does not know


def test_results_of_unsafe_operators(session: Session, given: Any, made: Any, refused: Any) -> None:
    """What the memory holds and the gradients go different ways."""
    w = given("w", 4, requires_grad=True)
    y = made(lambda: w * 2)
    part, _ = made(lambda: y.unsafe_chunk(2))
    (fixed,) = session.info(part).fixed
    assert not fixed.noticed and fixed.output == "a result of unsafe_chunk()" and fixed.has_node
    with refused("D2S222", "part.add_(1)", said="of which PyTorch's autograd does not know"):
        made(lambda: part.add_(1))
    nonwritable_views.require_returnable(session, session.info(part))
    with torch.no_grad():
        made(lambda: y.mul_(2))
    with refused("D2S222", "require_returnable(session, session.info(part))"):
        nonwritable_views.require_returnable(session, session.info(part))
    with refused("D2S222", "part + 1"):
        made(lambda: part + 1)


# -- what is known of a view


@pytest.mark.parametrize(
    ("call", "name", "args"),
    [
        (lambda x: x.unbind(1)[2], "aten.select.int", (HOLE, 1, 2)),
        (lambda x: x.split(2, dim=1)[1], "aten.slice.Tensor", (HOLE, 1, 2, 3)),
        (lambda x: x.split([1, 1])[1], "aten.slice.Tensor", (HOLE, 0, 1, 2)),
        (lambda x: x.chunk(3, 1)[0], "aten.slice.Tensor", (HOLE, 1, 0, 1)),
    ],
)
def test_one_of_several_by_itself(call: Any, name: str, args: Any, session: Session, given: Any, made: Any) -> None:
    """PyTorch lets that be written, which the Program does."""
    (step,) = session.info(made(call, given("x", 2, 3))).steps
    assert (step.name, step.args, step.index, step.results) == (name, args, 0, 1)


def test_several_of_a_size_that_is_not_known_stay_together(session: Session, given: Any, made: Any) -> None:
    steps = session.info(made(lambda x: x.chunk(2)[1], given("x", None))).steps
    assert [(step.name, step.index, step.results) for step in steps] == [("aten.chunk.default", 1, 2)]


def test_unsafe_operators_are_taken_apart_in_a_replay_only() -> None:
    step = RecordedStep("aten.unsafe_chunk.default", (HOLE, 2), (), 1, 2, ("inherit", None))
    outputs = torch.ones(4).chunk(2)
    assert nonwritable_views.alone(step, outputs) is step
    assert nonwritable_views.alone(step, outputs, True).args == (HOLE, 0, 2, 4)


def test_who_writes_a_row_where_nothing_needs_a_gradient(session: Session, given: Any, made: Any) -> None:
    """A later call may bring a tensor that does: it is told what to say."""
    x = given("x", 3)
    row = made(lambda: x.unbind()[0])
    said = nonwritable_views.refusal([session.info(row)], [session.info(row)])
    with pytest.raises(RuntimeError) as expected:
        torch.ones(3, requires_grad=True).mul(1).unbind()[0].add_(1)
    assert said == str(expected.value)
    with torch.no_grad():
        assert nonwritable_views.refusal([session.info(row)], [session.info(row)]) is None
    assert nonwritable_views.refusal([session.info(x)], [session.info(x)]) is None
    made(lambda: row.add_(1))
    assert session.program.block.ops[-1].attrs == {"refused": said}


def test_rows_of_an_iteration_are_those_of_one_unbind(session: Session, given: Any, number: Any, made: Any) -> None:
    """PyTorch names the number in its message, also where only the run knows it."""
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    rows = Rows(session.info(y))
    first, some = made(lambda: (y[0], y[1]))
    index = number()
    rows.note(session.info(first), 0)
    rows.note(session.info(some), index)
    with pytest.raises(RuntimeError, match=f"^Output 0 of {node_in_messages('Unbind')} is a view"):
        made(lambda: first.add_(1))
    infos = [session.info(some)]
    with pytest.raises(RuntimeError) as found:
        nonwritable_views.require_writable(session, infos, infos, lambda: None)
    assert type(found.value.args[0]).__name__ == "StagedStr" and infos[0].fixed[0].index is index


def test_rows_of_an_iteration_without_gradients(session: Session, given: Any, made: Any) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    rows = in_no_grad(lambda: Rows(session.info(y)))
    row = made(lambda: y[0])
    rows.note(session.info(row), 0)
    assert session.info(row).fixed == ()


def test_when_a_view_needs_a_gradient_by_its_base(session: Session, given: Any, made: Any) -> None:
    y, w = made(lambda: torch.zeros(3)), given("w", 3, requires_grad=True)
    part = in_no_grad(lambda: made(lambda: y[1:]))
    info = session.info(part)
    assert nonwritable_views.needed_by_base(info).never
    made(lambda: y.mul_(2))
    (fixed,) = info.fixed
    assert nonwritable_views.stale_when(info, fixed, info.storage.value).always
    assert nonwritable_views.stale_when(info, fixed, fixed.base).never
