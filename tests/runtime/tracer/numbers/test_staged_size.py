"""Sizes in a trace: a tuple that is a ``torch.Size``, whatever the numbers in it are."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.tracer.numbers.scalars import StagedBool
from runtime.tracer.numbers.staged_size import StagedSize


def test_sums_slices_and_repetitions_are_sizes(session: Any, number: Any) -> None:
    n, size = number(), StagedSize((2, 3))
    for made, wanted in (
        (size + (n, 4), (2, 3, n, 4)), (size + torch.Size([4]), (2, 3, 4)), ((n,) + size, (n, 2, 3)),
        (size * 2, (2, 3, 2, 3)), (2 * size, (2, 3, 2, 3)), (size[1:], (3,)), (size[:0], ()),
        (size + (True,), (2, 3, True)),
    ):  # fmt: skip
        assert type(made) is StagedSize and list(map(id, made)) == list(map(id, wanted))
    assert size[0] == 2 and size[-1] == 3


def test_what_is_no_size_makes_a_tuple_or_an_error_as_torchs(session: Any, number: Any) -> None:
    size, real = StagedSize((2, 3)), torch.Size((2, 3))
    for other in ([1], 1, "ab"):
        for made in (lambda a, b=other: a + b, lambda a, b=other: b + a):
            with pytest.raises(TypeError):
                made(real)
            with pytest.raises(TypeError):
                made(size)
    for other in (("a",), (1.5,)):
        try:
            expected = real + other
        except TypeError:
            with pytest.raises(TypeError):
                size + other
        else:
            assert type(size + other) is type(expected) is tuple


def test_the_count_of_elements(session: Any, number: Any, recorded: Any) -> None:
    n = number()
    recorded()
    assert StagedSize(()).numel() == 1 and StagedSize((2, 3)).numel() == 6 and recorded() == []
    assert StagedSize((2, n, 3)).numel().kind == "int" and recorded() == ["scalar.mul", "scalar.mul"]


def test_equality(session: Any, number: Any, recorded: Any) -> None:
    n, size = number(), StagedSize((2, 3))
    recorded()
    assert (size == (2, 3)) is True and (size != (2, 3)) is False and (size == torch.Size((2, 3))) is True
    assert (size == (2, 4)) is False and (size == (2, 3, 1)) is False and (size == [2, 3]) is False
    assert (StagedSize((n, 3)) == (n, 4)) is False, "one that differs decides"
    recorded()
    same = StagedSize((2, n)) == (2, 5)
    assert isinstance(same, StagedBool) and recorded() == ["scalar.eq"]
    same = StagedSize((n, n)) == (1, 2)
    assert isinstance(same, StagedBool) and recorded() == ["scalar.eq", "scalar.eq", "scalar.and_"]
    assert isinstance(StagedSize((n,)) != (1,), StagedBool) and recorded() == ["scalar.eq", "scalar.not_"]


def test_as_a_key_and_as_text() -> None:
    assert hash(StagedSize((2, 3))) == hash((2, 3)) and repr(StagedSize((2, 3))) == "torch.Size([2, 3])"
