"""Unknown sizes where eager takes more values than torch's rules do: 1, which is broadcast, and -1, what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.ir import Block, ScalarType
from runtime.tracer.numbers import scalars
from runtime.tracer.recording import unknown_sizes
from runtime.tracer.recording.session import Replaying, Session

Tensor = torch.Tensor


@pytest.fixture
def some(given: Any, made: Any) -> Tensor:
    """A tensor whose length depends on data."""
    return made(lambda x: x[x > 0], given("some", 3))


@pytest.fixture
def size(session: Session, number: Any) -> torch.SymInt:
    """A number of the run where torch takes a size."""
    return session.sizes.symbolic(number())


KNOWN: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], tuple[int, ...]]] = {
    "sum": (lambda x, some: x + some, (3,)),
    "sum, turned": (lambda x, some: some - x, (3,)),
    "rank": (lambda x, some: x[:, None] * some[:, None], (3, 1)),
    "three": (lambda x, some: torch.where(x > 0, some, x), (3,)),
    "no pointwise operator": (lambda x, some: torch.complex(some, x), (3,)),
    "expand": (lambda x, some: some.expand(3), (3,)),
    "expand as": (lambda x, some: some.expand_as(x), (3,)),
    "broadcast to": (lambda x, some: some.broadcast_to(2, 3), (2, 3)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_size_that_may_be_one(
    name: str, session: Session, given: Any, some: Tensor, made: Any, recorded: Any
) -> None:
    """The result has the other's size; the operator itself says in the run whether the unknown one fits."""
    call, shape = KNOWN[name]
    x = given("x", 3)
    made(call, x, some)
    recorded()
    y = made(call, x, some)
    assert tuple(y.shape) == shape and "assert" not in recorded() and session.program.assumes == []


def test_two_sizes_that_may_be_one(given: Any, some: Tensor, made: Any, recorded: Any) -> None:
    """Which of them the result has nobody knows: they have to be equal."""
    other = made(lambda y: y[y > 0], given("y", 3))
    recorded()
    made(lambda: some + other)
    assert recorded() == ["aten.add.Tensor", "scalar.size", "scalar.size", "scalar.eq", "assert"]


def test_expanding_to_one_or_to_what_it_is(some: Tensor, made: Any, session: Session) -> None:
    func = torch.ops.aten.expand.default
    assert unknown_sizes.settled(session, func, [some, [2, -1]], {}) is None
    assert unknown_sizes.settled(session, func, [some, [1]], {}) is None
    (fake, *_) = unknown_sizes.settled(session, func, [some, [3]], {}) or [None]
    assert fake is not None and fake.shape == (1,)
    row = made(lambda: some[None])
    assert unknown_sizes.settled(session, func, [row, [3]], {}) is None, "eager refuses the rank"


def test_what_is_left(session: Session, given: Any, size: Any, made: Any, recorded: Any) -> None:
    x = given("x", 6)
    recorded()
    for call in (lambda: x.view(size, 3), lambda: x.reshape(2, size)):
        assert tuple(made(call).shape) == (2, 3)
    assert recorded() == ["aten.view.default", "aten.reshape.default"]


def test_a_size_that_cannot_be_what_is_left(session: Session, given: Any, size: Any) -> None:
    func, x = torch.ops.aten.view.default, given("x", 6)
    assert unknown_sizes.with_size_left(session, func, [x, [size, 3]]) == [x, [-1, 3]]
    assert unknown_sizes.with_size_left(session, func, [x, [size, -1]]) is None
    assert unknown_sizes.with_size_left(session, func, [x, [2, 3]]) is None
    assert unknown_sizes.with_size_left(session, func, [x, [given("y", None).shape[0], 3]]) is None
    assert unknown_sizes.with_size_left(session, torch.ops.aten.view.dtype, [x, torch.int32]) is None
    assert unknown_sizes.with_size_left(session, torch.ops.aten.expand.default, [x, [size, 3]]) is None


def test_several_of_which_a_path_gives_what_is_left(session: Session, given: Any, number: Any, refused: Any) -> None:
    """Which of them that is depends on the path."""
    flag = session.new_variable(ScalarType("bool"))
    blocks = [Block([], [], [-1]), Block([], [], [2])]
    (var,) = session.emit("cond", [flag], types=[ScalarType("int")], blocks=blocks)
    sizes = [session.sizes.symbolic(scalars.wrap(var)), session.sizes.symbolic(number())]
    with refused("D2S235", "with_size_left(session, torch.ops.aten.view.default, [x, sizes])"):
        x = given("x", 6)
        unknown_sizes.with_size_left(session, torch.ops.aten.view.default, [x, sizes])


def test_what_depends_on_data(session: Session, given: Any, some: Tensor, size: Any) -> None:
    x = given("x", None)
    assert not unknown_sizes.depends_on_data(session, [x, (x.shape[0] * 2, 3)])
    assert unknown_sizes.depends_on_data(session, [x, (some,)])
    assert unknown_sizes.depends_on_data(session, size) and not unknown_sizes.depends_on_data(session, "text")


def test_the_layout_of_a_result(session: Session, given: Any, some: Tensor, made: Any) -> None:
    """Strides of a result that is laid out as its operands tell what the unknown size is, but for the usual layout."""
    add, x = torch.ops.aten.add.Tensor, given("x", 2, 3)
    turned = made(lambda: x.t())
    assert unknown_sizes.is_dense(session, add, [x, some]) and not unknown_sizes.is_dense(session, add, [turned, some])
    assert not unknown_sizes.is_dense(session, torch.ops.aten.expand.default, [some, [3]])
    assert unknown_sizes.is_dense(session, torch.ops.aten.view.default, [turned, [6]])
    y = made(lambda: x.t() + some[:, None])
    assert tuple(y.shape) == (3, 2) and not session.info(y).layout_known


def test_a_gradient_would_depend_on_the_size(session: Session, given: Any, some: Tensor) -> None:
    """In a replay the size decides where a gradient is summed."""
    x, add = given("x", 3), torch.ops.aten.add.Tensor
    session.replaying = Replaying()
    assert unknown_sizes.settled(session, add, [x, some], {}) is not None
    with torch_internals.no_modes():
        some.requires_grad_()
    with pytest.raises(TraceError, match="whether a tensor is broadcast here depends on a size") as found:
        unknown_sizes.settled(session, add, [x, some], {})
    assert found.value.code == "D2S235"
