"""Tensors that lie in memory in one way or another, by the path: what reads their memory, and questions about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

FLAGS = [torch.tensor(1.0), torch.tensor(-1.0)]
READS = {
    "as_strided": lambda y: y.as_strided((2, 2), (1, 2)),
    "as_strided with an offset": lambda y: y.as_strided((2, 2), (1, 2), 1),
    "as_strided_copy": lambda y: torch.as_strided_copy(y, (2, 2), (1, 2)),
    "reshape": lambda y: y.reshape(-1),
    "flatten": lambda y: y.flatten()[3:],
    "contiguous": lambda y: y.contiguous().view(-1),
    "rows up to a number": lambda y: y[: int((y > 3).sum()) % 4],
    "rows from a number": lambda y: y[int((y > 3).sum()) % 4 :, 1] * 2,
    "a row": lambda y: y[int((y > 300).sum())] + 1,
    "a column": lambda y: y[:, int((y > 300).sum())],
}
"""Operators that find other elements in another layout, or give a view of one."""


def of_one_path(read):
    def function(flag, x):
        y = x * 2
        if flag > 0:
            y = y.view(2, 5).t()
        else:
            y = (x + 1).view(5, 2)
        return read(y)

    return function


def of_both_paths(read):
    def function(flag, x):
        y = x * 2
        if flag > 0:
            y = y.view(2, 5).t()
        else:
            y = (x + 1).view(2, 5).t()
        return read(y)

    return function


def of_an_argument(read):
    def function(flag, x):
        y = x.view(2, 5).t() if flag > 0 else x.view(5, 2)
        return read(y)

    return function


def of_an_iteration(read):
    def function(flag, x):
        y = x.view(5, 2)
        while flag > 0:
            y = (y * 2).t()
            y = y.t() if flag > 1 else y.reshape(2, 5).t()
            flag = flag - 1
        return read(y)

    return function


@pytest.mark.parametrize("make", [of_one_path, of_both_paths, of_an_argument, of_an_iteration])
@pytest.mark.parametrize("name", READS)
def test_what_reads_memory(name: str, make: Callable[..., Callable[..., object]]) -> None:
    for leaf in (torch.arange(10.0), torch.arange(10.0, requires_grad=True)):
        check(make(READS[name]), *([flag, leaf] for flag in FLAGS))


def strides_in_turn(flag, x):
    while flag > 0:
        x = x.as_strided((2, 2), (1, 2))
        flag = flag - 1
    return x


def test_as_strided_of_what_an_iteration_left() -> None:
    for leaf in (torch.arange(10.0), torch.arange(10.0, requires_grad=True)):
        check(strides_in_turn, *([torch.tensor(count), leaf] for count in (2.0, 1.0, 0.0)))


QUESTIONS = {
    "stride": lambda y: y.stride(), "stride of one dimension": lambda y: y.stride(0),
    "is_contiguous": lambda y: y.is_contiguous(), "of a sum": lambda y: (y * 2).stride(),
}  # fmt: skip


@pytest.mark.parametrize("make", [of_one_path, of_an_argument])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_that_the_path_answers(name: str, make: Callable[..., Callable[..., object]]) -> None:
    with pytest.raises(TraceError) as caught:
        to_static(make(QUESTIONS[name]))(FLAGS[0], torch.arange(10.0))
    assert caught.value.code == "D2S213"


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_with_one_answer(name: str) -> None:
    check(of_both_paths(QUESTIONS[name]), *([flag, torch.arange(10.0)] for flag in FLAGS))


@pytest.mark.parametrize("make", [of_one_path, of_both_paths, of_an_argument])
def test_what_is_laid_out_anew(make: Callable[..., Callable[..., object]]) -> None:
    def asked(y):
        z = y.contiguous()
        return z.stride(), z.is_contiguous(), (z + 1).stride()

    check(make(asked), *([flag, torch.arange(10.0)] for flag in FLAGS))


def test_offsets() -> None:
    def of_views(flag, x):
        y = x[1:] if flag > 0 else x[2:]
        return y.storage_offset()

    def of_values(flag, x):
        y = x + 1 if flag > 0 else x * 2
        return y.storage_offset(), x[2:].storage_offset()

    with pytest.raises(TraceError) as caught:
        to_static(of_views)(FLAGS[0], torch.arange(10.0))
    assert caught.value.code == "D2S213"
    check(of_values, *([flag, torch.arange(10.0)] for flag in FLAGS))
