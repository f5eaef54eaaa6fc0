"""Results of calls with numbers that only the run knows: which of their sizes are fixed, found, or read off them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from runtime.ops import aten
from runtime.tracer.numbers import number_operands
from runtime.tracer.recording import sampled_shapes
from runtime.tracer.recording.sampled_shapes import Unlike
from runtime.tracer.recording.session import Session

Tensor = torch.Tensor


@pytest.fixture
def n(session: Session, number: Any) -> int:
    """A plain int that stands for one of the run."""
    return number_operands.int_stand_in(session, number())


READ = ["scalar.size", "scalar.eq", "assert"]
FOUND: dict[str, tuple[Callable[[Tensor, int], Any], list[Any], list[str]]] = {
    "fixed": (lambda x, n: torch.tril(x, n), [[torch.float32, [3, 3], [0, 1]]], []),
    "fixed, in any layout": (lambda x, n: torch.linalg.matrix_power(x, n), [[torch.float32, [3, 3], None]], []),
    "read off": (lambda x, n: F.avg_pool1d(x, n), [[torch.float32, [3, None], [0, 1]]], []),
    "the number": (lambda x, n: torch.linspace(0, 1, n), [[torch.float32, [None], [0]]], READ),
    "the number, beside a fixed one": (
        lambda x, n: F.one_hot(x.long(), n), [[torch.int64, [3, 3, None], [0, 1, 2]]], READ),
    "several results": (
        lambda x, n: x[0].topk(n), [[torch.float32, [None], [0]], [torch.int64, [None], [0]]], READ + READ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_all_answers_agree_on(name: str, n: int, session: Session, given: Any, made: Any, recorded: Any) -> None:
    """It is checked in the run; a size that is the number always is tested."""
    call, checked, tests = FOUND[name]
    x = given("x", 3, 3)
    recorded()
    made(call, x, n)
    names = recorded()
    (place,) = [at for at, op in enumerate(session.program.block.ops) if aten.CHECKED in op.attrs]
    op = session.program.block.ops[place]
    assert op.attrs[aten.CHECKED] == checked and names[-len(tests) or len(names) :] == tests
    assert n not in op.args and session.values.number_operands[n].var in op.inputs


def test_a_size_that_varies_with_an_unknown_size(n: int, session: Session, given: Any, made: Any) -> None:
    y = made(lambda x: F.avg_pool1d(x, n), given("x", 2, None))
    assert y.shape[0] == 2 and not session.sizes.is_of_inputs(y.shape[1])
    assert made(lambda x: torch.tril(x, n), given("y", None, 3)).shape[1] == 3


def test_a_number_of_which_another_form_comes(n: int, session: Session, given: Any, made: Any, recorded: Any) -> None:
    """The path with it is traced apart."""
    x = given("x", 4)
    recorded()
    with pytest.raises(Unlike) as found:
        made(lambda: torch.combinations(x, n))
    assert (found.value.stand_in, found.value.value) == (n, 0) and not isinstance(found.value, Exception)
    assert recorded() == []
    session.values.special_numbers[n] = frozenset({0})
    assert made(lambda: torch.combinations(x, n)).dim() == 2


def test_what_eager_refuses_whatever_the_number_is(n: int, given: Any, made: Any) -> None:
    x = given("x", 2, 3)
    with pytest.raises(RuntimeError) as expected:
        torch.linalg.matrix_power(torch.ones(2, 3), 2)
    with pytest.raises(RuntimeError) as found:
        made(lambda: torch.linalg.matrix_power(x, n))
    assert found.value.args == expected.value.args


REFUSED: dict[str, Callable[[Tensor, int], Any]] = {
    "a part of memory": lambda x, n: x.unfold(0, n, 1),
    "parts of memory": lambda x, n: x.chunk(n),
    "another rank": lambda x, n: x.unsqueeze(n),
}


@pytest.mark.parametrize("name", REFUSED)
def test_which_part_of_memory_depends_on_the_number(name: str, n: int, given: Any, made: Any, refused: Any) -> None:
    with refused("D2S238", f'"{name}": lambda', said="which part of a tensor's memory this function gives"):
        made(REFUSED[name], given("x", 8), n)


def test_without_unknown_numbers_nothing_is_tried(session: Session, given: Any) -> None:
    assert sampled_shapes.apply(session, torch.ops.aten.tril.default, [given("x", 3, 3), 1], {}) is None


@pytest.mark.parametrize(
    ("layouts", "order"),
    [
        ([torch.ones(2, 3), torch.ones(4, 5)], [0, 1]),
        ([torch.ones(2, 3).t(), torch.ones(4, 5).t()], [1, 0]),
        ([torch.ones(2, 3), torch.ones(4, 5).t()], None),
        ([torch.ones(2, 1), torch.ones(4, 5).t()], [1, 0]),
        ([torch.ones(2, 3, 4).permute(2, 0, 1)], [1, 2, 0]),
        ([torch.ones(2, 4)[:, ::2]], None),
        ([torch.ones(())], []),
    ],
    ids=str,
)
def test_the_order_of_dimensions_in_memory(layouts: list[Tensor], order: list[int] | None) -> None:
    assert sampled_shapes.order_of(layouts) == order


def test_nothing_is_checked_of_results_that_are_known(session: Session, given: Any) -> None:
    assert sampled_shapes.checks(session, [given("x", 3), 3]) == {}
