"""What a user says of the sizes of a loop's variables, and that it is so."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import Location
from runtime.tracer.recording.session import Session
from runtime.tracer.values.loop_sizes import check_sizes, with_sizes
from runtime.tracer.values.structure import DYNAMIC, Known, Number, Tensor
from tests.runtime.tracer.conftest import Input
from tests.runtime.tracer.control.staging import Staging

PLACE = Location("f.py", 5)


def test_without_a_word_it_is_what_it_is(session: Session, given: Input) -> None:
    x = given("x", 2, 3)
    found = with_sizes(session, "x", x, {"y": (None, 3)})
    assert isinstance(found, Known) and found.value is x


@pytest.mark.parametrize(("said", "shape"), [
    ((None, 3), (DYNAMIC, 3)), ((None, None), (DYNAMIC, DYNAMIC)), ((2, 3), (2, 3)), ((9, None), (2, DYNAMIC)),
    ([None, 3], (DYNAMIC, 3)),
])  # fmt: skip
def test_sizes_that_may_change(said: Any, shape: Any, session: Session, given: Input) -> None:
    found = with_sizes(session, "x", given("x", 2, 3), {"x": said})
    assert isinstance(found, Tensor) and found.shape == shape and found.strides is None and found.layout_known


def test_an_open_size_is_what_it_is(session: Session, given: Input) -> None:
    found = with_sizes(session, "y", given("y", None, 3), {"y": (4, 3)})
    assert isinstance(found, Tensor) and isinstance(found.shape[0], torch.SymInt) and found.shape[1] == 3


def test_strides_are_those_of_known_sizes(session: Session, staging: Staging) -> None:
    x = staging.given("m").t()
    fixed = with_sizes(session, "x", x, {"x": (3, 2)})
    assert isinstance(fixed, Tensor) and fixed.strides == (1, 3) and fixed.layout_known
    changing = with_sizes(session, "x", x, {"x": (None, 2)})
    assert isinstance(changing, Tensor) and changing.strides is None and not changing.layout_known


@pytest.mark.parametrize(("value", "said"), [("tensor", (None,)), ("tensor", (None, 3, 1)), (1, (None,)), (None, ())])
def test_as_many_sizes_as_dimensions(value: Any, said: Any, session: Session, given: Input) -> None:
    what = given("x", 2, 3) if value == "tensor" else value
    with pytest.raises(TraceError) as found:
        with_sizes(session, "x", what, {"x": said})
    assert found.value.code == "D2S282" and f"{len(said)} sizes" in found.value.summary
    assert ("2 dimensions" in found.value.summary) is (value == "tensor")


def tensor(*shape: Any) -> Tensor:
    return Tensor(shape, None, torch.float32, torch.device("cpu"), False, True)


HOLD: list[tuple[Any, Any]] = [
    (tensor(2, 3), (2, 3)), (tensor(DYNAMIC, 3), (None, 3)), (tensor(2, 3), (None, None)), (tensor(), ()),
    (Number("int"), (2,)), (Known(1), (2,)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOLD)))
def test_sizes_that_are_as_they_were_said(number: int, session: Session) -> None:
    found, said = HOLD[number]
    check_sizes(session, [("x", found), ("other", tensor(DYNAMIC))], {"x": said}, PLACE)


@pytest.mark.parametrize(("found", "said", "words"), [
    (tensor(DYNAMIC, 3), (2, 3), "dimension 0 changes"), (tensor(2, 4), (None, 3), "dimension 1 is 4"),
    (tensor(2, DYNAMIC), (None, 7), "dimension 1 changes"),
])  # fmt: skip
def test_sizes_that_are_others(found: Any, said: Any, words: str, session: Session) -> None:
    with pytest.raises(TraceError) as raised:
        check_sizes(session, [("y", tensor(1)), ("x", found)], {"x": said}, PLACE)
    assert raised.value.code == "D2S282" and words in raised.value.summary and raised.value.location == PLACE


def test_a_size_that_an_open_one_stands_for_is_not_known(session: Session, given: Input) -> None:
    found = with_sizes(session, "x", given("x", None), {"x": (4,)})
    check_sizes(session, [("x", found)], {"x": (4,)}, PLACE)
