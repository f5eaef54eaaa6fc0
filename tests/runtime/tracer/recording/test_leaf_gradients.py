"""``tensor.grad`` and ``retain_grad()`` in a trace: what stands there, what a store or a backward pass puts there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from runtime.tracer.ambient.calls import Ahead, Restart
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording import leaf_gradients
from runtime.tracer.recording.session import Session
from runtime.tracer.values.structure import Choice

Tensor = torch.Tensor


def a_parameter(grad: Tensor | None = None) -> torch.nn.Parameter:
    made = torch.nn.Parameter(torch.ones(3))
    made.grad = grad
    return made


def test_nothing_hangs_on_a_tensor_made_inside(session: Session, given: Any, made: Any) -> None:
    y = made(lambda x: x * 2, given("x", 3))
    assert leaf_gradients.read(session, y) is None
    assert leaf_gradients.of(session, y) is leaf_gradients.of(session, y)


def test_that_nothing_hangs_on_a_parameter_is_a_guard(session: Session) -> None:
    parameter = a_parameter()
    assert leaf_gradients.read(session, parameter) is None
    assert any("has a gradient" in guard.description for guard in session.guards.freeze())


def test_what_hangs_on_a_parameter_is_looked_up_in_each_call(session: Session, made: Any) -> None:
    hung = torch.ones(3)
    parameter = a_parameter(hung)
    found = leaf_gradients.read(session, parameter)
    assert found is hung
    made(lambda: found * 2)
    assert any(one.name.endswith(".grad") for one in session.program.params)


def test_a_gradient_that_hangs_on_an_argument(session: Session, refused: Any) -> None:
    real = torch.ones(3, requires_grad=True)
    real.grad = torch.ones(3)
    fake = session.inputs.add_input(real, "w")
    with pytest.raises(Restart) as again:
        leaf_gradients.read(session, fake)
    (found,) = again.value.known.elsewhere
    assert found.argument == "w" and found.owner is None
    session.call.ahead = Ahead(in_file=True)
    with refused("D2S213", "leaf_gradients.read(session, fake)", said="which has one when the call begins"):
        leaf_gradients.read(session, fake)


def test_a_store_is_put_back_with_the_frame(session: Session, given: Any, made: Any) -> None:
    w, x = given("w", 3, requires_grad=True), given("x", 3)
    leaf_gradients.write(session, w, x)
    session.journal.open()
    leaf_gradients.write(session, w, None)
    assert leaf_gradients.read(session, w) is None
    (after,) = session.journal.close().values()
    assert after is None and leaf_gradients.read(session, w) is x


EAGER: dict[str, Callable[[Tensor], Any]] = {
    "itself": lambda w: w,
    "number": lambda w: 3,
    "text": lambda w: "gradient",
    "another shape": lambda w: torch.ones(2),
    "another dtype": lambda w: torch.ones(3, dtype=torch.float64),
}


@pytest.mark.parametrize("name", EAGER)
def test_what_eager_lets_nobody_store(name: str, session: Session, as_eager: Any) -> None:
    as_eager(lambda w: setattr(w, "grad", EAGER[name](w)), torch.ones(3, requires_grad=True))
    assert not session.graph.gradients


def test_every_option_of_a_store_has_to_fit(session: Session, given: Any, number: Any) -> None:
    w, x = given("w", 3, requires_grad=True), given("x", 3)
    choice = Choice(number(), (x, None))
    leaf_gradients.write(session, w, choice)
    assert leaf_gradients.read(session, w) is choice
    with pytest.raises(TypeError, match="of type str"):
        leaf_gradients.write(session, w, Choice(number(), (x, "text")))
    assert leaf_gradients.read(session, w) is choice


# -- what a backward pass adds


def test_the_first_gradient_is_laid_out_as_the_leaf(session: Session, given: Any, made: Any, recorded: Any) -> None:
    x = given("x", 2, 3)
    leaf = made(lambda: torch.zeros(3, 2, requires_grad=True))
    recorded()
    made(lambda: leaf_gradients.accumulate(session, leaf, x.t()))
    assert recorded() == ["aten.t.default", "aten.contiguous.default"]
    placed = leaf_gradients.of(session, leaf).placed
    assert placed is leaf_gradients.read(session, leaf) and placed.is_contiguous()


def test_a_leaf_that_is_not_contiguous(session: Session, given: Any, made: Any, recorded: Any) -> None:
    leaf = made(lambda: torch.zeros(2, 3).t().detach().clone(memory_format=torch.preserve_format).requires_grad_())
    assert leaf.stride() == (1, 3)
    recorded()
    made(lambda: leaf_gradients.accumulate(session, leaf, torch.ones(3, 2)))
    assert recorded() == ["aten.ones.default", "aten.empty_like.default", "update"]
    assert leaf_gradients.read(session, leaf).stride() == (1, 3)


def test_none_is_added_to_nothing(session: Session, given: Any, made: Any, recorded: Any) -> None:
    w = given("w", 3, requires_grad=True)
    made(lambda: leaf_gradients.accumulate(session, w, None))
    assert leaf_gradients.read(session, w) is None and recorded() == []


def test_hooks_are_called_with_the_gradient(session: Session, made: Any, recorded: Any) -> None:
    seen: list[Any] = []
    parameter = a_parameter()
    parameter.register_hook(lambda g: g * 2)
    parameter.register_hook(lambda g: seen.append(g))
    parameter.register_post_accumulate_grad_hook(lambda p: seen.append(p))
    made(lambda: leaf_gradients.accumulate(session, parameter, torch.ones(3)))
    assert recorded() == ["aten.ones.default", "aten.mul.Tensor", "aten.clone.default"]
    assert seen[0].shape == (3,) and seen[1] is parameter
    assert any("the hooks of" in guard.description for guard in session.guards.freeze())


def test_hooks_of_what_grad_gives(session: Session, given: Any, made: Any, recorded: Any) -> None:
    """Those after the accumulation are not called: nothing is."""
    parameter, other, x = a_parameter(), a_parameter(), given("x", 3)
    session.fake(parameter), session.fake(other)
    assert leaf_gradients.hooked(session, parameter, x) is x
    other.register_hook(lambda g: g + 1)
    other.register_post_accumulate_grad_hook(lambda p: 1 / 0)
    assert made(lambda: leaf_gradients.hooked(session, other, x)) is not x and recorded() == ["aten.add.Tensor"]
    assert leaf_gradients.hooked(session, other, None) is None


@pytest.mark.parametrize(
    ("register", "hook"),
    [("register_hook", lambda g: 3), ("register_post_accumulate_grad_hook", lambda p: torch.ones(3))],
)  # fmt: skip
def test_a_hook_that_gives_what_it_may_not(register: str, hook: Any, session: Session, made: Any) -> None:
    parameter = a_parameter()
    getattr(parameter, register)(hook)
    with pytest.raises((RuntimeError, TypeError)) as found:
        made(lambda: leaf_gradients.accumulate(session, parameter, torch.ones(3)))
    with pytest.raises(type(found.value)) as expected:
        parameter.sum().backward()
    assert found.value.args == expected.value.args


# -- retain_grad


def test_a_leaf_retains_nothing_more(session: Session, given: Any, made: Any) -> None:
    w = given("w", 3, requires_grad=True)
    leaf_gradients.retain(session, w)
    parameter = a_parameter()
    leaf_gradients.retain(session, parameter)
    inner = made(lambda: torch.zeros(3, requires_grad=True))
    leaf_gradients.retain(session, inner)
    assert [leaf_gradients.retains(session, one) for one in (w, parameter, inner)] == [False, False, False]
    assert leaf_gradients.retained(session) == []


def test_a_result_retains_its_gradient(session: Session, given: Any, made: Any) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    assert leaf_gradients.retains(session, y) is False
    session.journal.open()
    leaf_gradients.retain(session, y)
    leaf_gradients.retain(session, y)
    assert leaf_gradients.retains(session, y) is True and leaf_gradients.retained(session) == [y]
    session.journal.close()
    assert leaf_gradients.retains(session, y) is False and leaf_gradients.retained(session) == []


def test_what_needs_no_gradient_retains_none(as_eager: Any) -> None:
    as_eager(lambda x: (x * 2).retain_grad(), torch.ones(3))


def test_a_result_of_the_callers_that_retains_its_gradient(session: Session) -> None:
    real = torch.ones(3, requires_grad=True) * 2
    real.retain_grad()
    fake = session.inputs.add_input(real, "y")
    assert leaf_gradients.retains(session, fake) is True


def test_where_the_path_tells_whether_it_is_retained(
    session: Session, given: Any, number: Any, made: Any, recorded: Any
) -> None:
    y = made(lambda w: w * 2, given("w", 3, requires_grad=True))
    leaf_gradients.retain(session, y)
    (place,) = session.graph.retaining.values()
    place.retains_grad = number("bool")
    assert isinstance(leaf_gradients.retains(session, y), Staged)
    made(lambda: leaf_gradients.accumulate_where_asked(session, y, torch.ones(3)))
    assert isinstance(leaf_gradients.read(session, y), Choice)


def test_a_tensor_made_inside_leaves_without_its_gradient(
    session: Session, given: Any, made: Any, refused: Any
) -> None:
    y, x = made(lambda x: x * 2, given("x", 3)), given("v", 3)
    leaf_gradients.require_none(session, y)
    leaf_gradients.write(session, y, x)
    with refused("D2S228", "leaf_gradients.require_none(session, y)"):
        leaf_gradients.require_none(session, y)
    leaf_gradients.write(session, y, None)
    leaf_gradients.require_none(session, y)


def test_a_hook_that_decides_by_the_path(session: Session, number: Any, made: Any) -> None:
    parameter, n = a_parameter(), number()
    parameter.register_hook(lambda g: Choice(n, (g, None)))
    with pytest.raises(TraceError, match="a hook gives another gradient on some paths only") as found:
        made(lambda: leaf_gradients.accumulate(session, parameter, torch.ones(3)))
    assert found.value.code == "D2S213"


def test_what_a_closed_branch_retained_is_asked_for_no_more() -> None:
    """A later ``backward()`` does not look for it: it read the tensor, which is not visible any more."""
    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(())
        if x.sum() > 0:
            h = x * w
            h.retain_grad()
            h.sin().sum().backward()
            total = h.grad.sum()  # type: ignore[union-attr]
        (w * 2).sum().backward()
        return total

    for sign in (1.0, -1.0):
        found = []
        for one in (f, dy2static.to_static(f)):
            w = torch.ones(3, requires_grad=True)
            found.append((one(torch.ones(3) * sign, w), w.grad))
        assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])
