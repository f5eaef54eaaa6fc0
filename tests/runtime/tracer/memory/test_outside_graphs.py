"""A gradient that goes on through the caller's graph, past where the function began, is refused; all others are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import Location, TensorType, Variable
from runtime.tracer.memory import outside_graphs
from runtime.tracer.memory.outside_graphs import AskedGradient
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor
PLACE = Location("a.py", 3, 0, "f", "grad(y, w)")


def variable(name: str, hint: str = "") -> Variable:
    return Variable(name, TensorType(torch.float32, (3,)), hint)


BY, THROUGH, MORE = variable("by", "w"), variable("through", "y"), variable("more", "z")
ASKED = AskedGradient((BY,), (THROUGH,), PLACE)


def leaf() -> Tensor:
    return torch.ones(3, requires_grad=True)


def from_middle(w: Tensor) -> Tensor:
    h = w * 2
    return h.exp()


OUTSIDE: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "computed of it": (lambda w: w * 2, True),
    "through several steps": (from_middle, True),
    "of it and another": (lambda w: leaf() * w + leaf(), True),
    "a view of it": (lambda w: w[1:].sum() * leaf(), True),
    "computed of another": (lambda w: leaf() * 2, False),
    "a leaf": (lambda w: leaf(), False),
    "detached": (lambda w: (w * 2).detach(), False),
    "without gradients": (lambda w: torch.ones(3), False),
    "of what was detached": (lambda w: w.detach() * leaf(), False),
}  # fmt: skip


def goes_on(w: Tensor, y: Tensor) -> bool:
    """Whether eager's gradient by ``w`` of a function of both goes through ``y`` as well."""
    grad = torch.autograd.grad((w + y.sum()).sum(), w, retain_graph=True)[0]
    return bool(grad.sum() != len(w))


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_call_is_refused_where_eager_goes_on(name: str) -> None:
    make, refused = OUTSIDE[name]
    w = leaf()
    values = {BY: w, THROUGH: make(w)}
    assert goes_on(w, values[THROUGH]) == refused
    if not refused:
        return outside_graphs.require_apart([ASKED], values)
    with pytest.raises(TraceError, match="a gradient by 'w' is asked for that goes back through 'y'") as found:
        outside_graphs.require_apart([ASKED], values)
    assert found.value.code == "D2S213" and found.value.location == PLACE


def test_by_a_tensor_in_the_middle_of_a_graph() -> None:
    """``w`` is one; what it was computed of does not matter."""
    start = leaf()
    w = start * 2
    outside_graphs.require_apart([ASKED], {BY: w, THROUGH: start * 3})
    with pytest.raises(TraceError, match="D2S213"):
        outside_graphs.require_apart([ASKED], {BY: w, THROUGH: w * 3})


def test_what_needs_no_gradient_is_asked_for_nothing() -> None:
    w = leaf()
    y = w * 2
    outside_graphs.require_apart([ASKED], {BY: w.detach(), THROUGH: y})
    w.requires_grad_(False)  # a gradient by it is an error of its own
    outside_graphs.require_apart([ASKED], {BY: w, THROUGH: y})


def test_each_of_several_counts() -> None:
    w, other = leaf(), leaf()
    asked = AskedGradient((MORE, BY), (THROUGH,), None)
    values = {MORE: other, BY: w, THROUGH: w * 2}
    with pytest.raises(TraceError, match="by 'w'"):
        outside_graphs.require_apart([asked], values)
    with pytest.raises(TraceError, match="by 'z'"):
        outside_graphs.require_apart([AskedGradient((BY,), (), None), asked], {**values, THROUGH: other * 2})
    through = AskedGradient((BY,), (MORE, THROUGH), None)
    with pytest.raises(TraceError, match="through 'y'"):
        outside_graphs.require_apart([through], {**values, MORE: leaf() * 2})


def test_what_the_call_does_not_have_is_passed_by() -> None:
    w = leaf()
    outside_graphs.require_apart([ASKED], {})
    outside_graphs.require_apart([ASKED], {BY: w})
    outside_graphs.require_apart([ASKED], {THROUGH: w * 2})
    outside_graphs.require_apart([], {BY: w, THROUGH: w * 2})


def test_one_without_a_name() -> None:
    w = leaf()
    nameless = AskedGradient((variable("a"),), (variable("b"),), None)
    with pytest.raises(TraceError, match="by a tensor from outside is asked for that goes back through a tensor from"):
        outside_graphs.require_apart([nameless], dict(zip((*nameless.by, *nameless.through), (w, w * 2))))


def test_a_gradient_that_may_go_on_in_another_call_is_noted(session: Session) -> None:
    """Only what the caller gave can be computed of something outside."""
    w, y = leaf(), leaf()
    one, two = (session.read(session.inputs.add_input(real, name)) for real, name in ((w, "w"), (y, "y")))
    inside = session.new_variable(TensorType(torch.float32, (3,)))
    for by, found in (((one,), (one,)), ((one,), (inside,)), ((inside,), (two,)), ((), (two,)), ((one,), ())):
        outside_graphs.note(session.inputs, by, found, PLACE)
    assert session.inputs.gradients == []
    outside_graphs.note(session.inputs, (one, inside), (one, two, inside), PLACE)
    assert session.inputs.gradients == [AskedGradient((one,), (two,), PLACE)]


def test_the_call_at_hand_is_refused_at_once(session: Session) -> None:
    w = leaf()
    one, two = (session.read(session.inputs.add_input(real, name)) for real, name in ((w, "w"), (w * 2, "y")))
    with pytest.raises(TraceError, match="by 'w' is asked for that goes back through 'y'"):
        outside_graphs.note(session.inputs, (one,), (two,), PLACE)


def test_the_trace_notes_what_it_asks_for(session: Session, made: Any) -> None:
    w, y = (session.inputs.add_input(leaf(), name) for name in "wy")
    made(lambda: torch.autograd.grad((w * y).sum(), w))
    [asked] = session.inputs.gradients
    assert (asked.by, asked.through) == ((session.read(w),), (session.read(y),))
    assert asked.location is not None and "torch.autograd.grad(" in asked.location.text
