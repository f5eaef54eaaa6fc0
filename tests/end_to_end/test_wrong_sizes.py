"""Mistakes with ``x.shape``: eager's exception in the user's code, whether a size is a number or known to the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import InputSpec, to_static
from tests.oracle import check


def beyond(x: torch.Tensor) -> Any:
    return x.shape[3]


def beyond_backwards(x: torch.Tensor) -> Any:
    n = 0
    n = n + x.shape[-4]
    return n


def of_a_number(x: torch.Tensor) -> Any:
    return x.sum().shape[0]


def by_name(x: torch.Tensor) -> Any:
    return x.shape["rows"]  # type: ignore[call-overload]


def by_a_float(x: torch.Tensor) -> Any:
    return x.shape[1.0]  # type: ignore[call-overload]


def step_of_zero(x: torch.Tensor) -> Any:
    return x.shape[::0]


def times_a_float(x: torch.Tensor) -> Any:
    return x.shape * 1.5  # type: ignore[operator]


def plus_a_list(x: torch.Tensor) -> Any:
    return x.shape + [1]  # type: ignore[operator]


def not_among_them(x: torch.Tensor) -> Any:
    return x.shape.index(99)


def too_few_names(x: torch.Tensor) -> Any:
    a, b, c = x.shape
    return a + b + c


def dimension_of_size(x: torch.Tensor) -> Any:
    return x.size(5)


def on_a_path(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        return x.shape[3]
    return 0


def caught(x: torch.Tensor) -> Any:
    try:
        return x.shape[7]
    except IndexError as error:
        return str(error), x.shape[0]


def of_a_result_that_shrank(x: torch.Tensor) -> Any:
    r = torch.ones(3)
    torch.sum(r, 0, out=r)
    return r.shape[0]


MISTAKES = (
    beyond, beyond_backwards, of_a_number, by_name, by_a_float, step_of_zero, times_a_float, plus_a_list,
    not_among_them, too_few_names, dimension_of_size, on_a_path, caught, of_a_result_that_shrank,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_exception_of_eager(mistake: Callable[..., Any]) -> None:
    check(mistake, (torch.ones(2, 3),), (torch.ones(4, 5),))


def test_of_sizes_that_the_call_gives() -> None:
    def wrong(x: torch.Tensor) -> Any:
        return x * x.shape[2]

    with pytest.raises(IndexError, match="tuple index out of range"):
        to_static(wrong, input_spec=[InputSpec([None, 3])])(torch.ones(2, 3))
