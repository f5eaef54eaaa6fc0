"""Values that are read off tensors: the staged number, what is recorded for it, and what is refused as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ops import scalar as scalar_ops
from runtime.tracer.numbers.scalars import StagedBool, StagedFloat, StagedInt
from runtime.tracer.recording import reads
from runtime.tracer.recording.session import Session


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(torch.float32, StagedFloat), (torch.bfloat16, StagedFloat), (torch.int64, StagedInt), (torch.uint8, StagedInt),
     (torch.bool, StagedBool)],
    ids=str,
)  # fmt: skip
def test_an_item_is_a_number_of_its_dtype(
    dtype: torch.dtype, kind: type, session: Session, given: Any, recorded: Any
) -> None:
    found = reads.item(session, given("x", 1, 1, dtype=dtype))
    assert type(found) is kind and recorded() == ["scalar.item"]


def test_an_item_of_a_size_that_is_not_known_is_asked_for_in_the_run(
    session: Session, given: Any, recorded: Any
) -> None:
    assert type(reads.item(session, given("x", None))) is StagedFloat and recorded() == ["scalar.item"]


def test_an_item_of_a_complex_tensor(session: Session, given: Any, refused: Any) -> None:
    z = given("z", dtype=torch.complex64)
    with refused("D2S215", "reads.item(session, z)"):
        reads.item(session, z)


EAGER: dict[str, tuple[Callable[[torch.Tensor], Any], Callable[..., Any], torch.dtype]] = {
    "item": (lambda x: x.item(), reads.item, torch.float32),
    "number": (float, reads.number, torch.float32),
    "index": (lambda x: x.__index__(), reads.index, torch.int64),
    "index of floats": (lambda x: x.__index__(), reads.index, torch.float32),
}


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize("name", EAGER)
def test_several_elements_or_none_are_no_number(
    name: str, size: int, session: Session, given: Any, recorded: Any
) -> None:
    eager, read, dtype = EAGER[name]
    with pytest.raises((RuntimeError, ValueError, TypeError)) as expected:
        eager(torch.ones(size, dtype=dtype))
    with pytest.raises(type(expected.value)) as found:
        read(session, given("x", size, dtype=dtype))
    assert found.value.args == expected.value.args and recorded() == []


def test_a_single_float_is_no_index(session: Session, given: Any) -> None:
    with pytest.raises(TypeError, match=scalar_ops.NO_INDEX):
        reads.index(session, given("x", 1))


def test_numbers_and_indices_of_one_element(session: Session, given: Any, made: Any, recorded: Any) -> None:
    x, flag, row = given("x", 1), given("flag", dtype=torch.bool), given("row", None)
    assert type(made(reads.number, session, x)) is StagedFloat and recorded() == ["scalar.item"]
    assert type(made(reads.index, session, flag)) is StagedInt and recorded() == ["scalar.item", "scalar.int"]
    assert type(reads.number(session, row)) is StagedFloat and recorded() == ["scalar.number"], "the run counts"


def test_a_list_has_the_tensors_form(session: Session, given: Any, made: Any, recorded: Any) -> None:
    found = made(reads.tolist, session, given("x", 2, 1, dtype=torch.int64))
    assert [[type(item) for item in row] for row in found] == [[StagedInt], [StagedInt]]
    assert recorded() == ["aten.unbind.int"] + 2 * ["aten.unbind.int", "scalar.item"]
    assert type(made(reads.tolist, session, given("y"))) is StagedFloat
    assert made(reads.tolist, session, given("z", 0, 2)) == []


def test_lists_that_are_refused(session: Session, given: Any, made: Any, refused: Any) -> None:
    with refused("D2S216", "size is not known"):
        reads.tolist(session, given("x", None))  # its size is not known
    with refused("D2S216", "4097"):
        reads.tolist(session, given("y", 4097))
    sparse = made(lambda x: x.to_sparse(), given("z", 2))
    with refused("D2S216", "tolist(session, sparse)"):
        reads.tolist(session, sparse)


def test_whose_length_is_open(session: Session, given: Any, made: Any) -> None:
    assert reads.has_open_length(session, given("x", None, 2)) and not reads.has_open_length(session, given("y", 3))
    assert not reads.has_open_length(session, torch.ones(2)), "it is no tensor of the trace"
    assert reads.has_open_length(session, made(lambda x: x.nonzero(), given("z", 3)))


def test_comparisons_are_numbers_of_the_run(session: Session, given: Any, made: Any, recorded: Any) -> None:
    x, y = given("x", 3), given("y", 3)
    assert type(made(torch.equal, x, y)) is StagedBool and recorded() == ["aten.equal.default"]
    assert type(made(torch.allclose, x, y)) is StagedBool and recorded() == ["aten.allclose.default"]
    assert type(made(lambda: x.sum().is_nonzero())) is StagedBool
    assert recorded() == ["aten.sum.default", "scalar.truth"]
    assert type(made(lambda: torch.Tensor.__contains__(x, 2.0))) is StagedBool
    assert recorded() == ["aten.eq.Scalar", "aten.any.default", "scalar.truth"]


def test_tolerances_may_be_tensors_without_a_history(
    session: Session, given: Any, made: Any, recorded: Any
) -> None:
    x, w, zero = given("x", 3), given("w", requires_grad=True), given("zero")
    made(lambda: torch.allclose(x, x, zero, atol=zero))
    assert recorded() == ["scalar.item", "scalar.item", "aten.allclose.default"]
    for call in (lambda x, w: torch.allclose(x, x, w), lambda x, w: torch.allclose(x, x, atol=w)):
        with pytest.raises(TypeError) as expected:
            call(torch.ones(3), torch.ones((), requires_grad=True))
        with pytest.raises(TypeError) as found:
            made(call, x, w)
        assert found.value.args == expected.value.args


def test_what_is_in_a_tensor(given: Any, made: Any) -> None:
    with pytest.raises(RuntimeError) as expected:
        "a" in torch.ones(3)
    with pytest.raises(RuntimeError) as found:
        made(lambda x: "a" in x, given("x", 3))
    assert found.value.args == expected.value.args


ASKED: dict[str, Callable[[torch.Tensor], Any]] = {
    "used as a condition": lambda x: 1 if x else 2,
    "converted to int": lambda x: int(x),
    "converted to float": lambda x: float(x),
    "converted to complex": lambda x: complex(x),
    "used as an index": lambda x: [1, 2][x.long()],
    "formatted": lambda x: f"{x}",
    "turned into text": lambda x: repr(x),
}


@pytest.mark.parametrize("what", ASKED)
def test_python_values_in_code_that_is_not_converted(what: str, given: Any, made: Any, refused: Any) -> None:
    with refused("D2S212", f'"{what}": lambda', said=f"a tensor is {what} in code that is not converted"):
        made(ASKED[what], given("x"))
