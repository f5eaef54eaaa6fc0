"""Counts that only the run knows, given to functions whose results have another form for each."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dy2static
from dy2static.errors import Dy2StaticError
from tests.oracle import check

VECTOR, MATRIX = torch.arange(4.0) + 1, torch.arange(12.0).view(3, 4) + 1
CALLS: dict[str, tuple[Any, torch.Tensor]] = {
    "chunk": (lambda x, n: x.chunk(int(n)), VECTOR),
    "chunk of columns": (lambda x, n: torch.chunk(x, int(n), dim=1), MATRIX),
    "chunk by name": (lambda x, n: torch.chunk(input=x, chunks=int(n), dim=-2), MATRIX),
    "split": (lambda x, n: x.split(int(n)), VECTOR),
    "split of columns": (lambda x, n: torch.split(x, int(n), 1)[0], MATRIX),
    "size of windows": (lambda x, n: x.unfold(0, int(n), 1), VECTOR),
    "step of windows": (lambda x, n: x.unfold(1, 2, int(n)), MATRIX),
    "both of windows": (lambda x, n: x.unfold(0, int(n), int(n) + 1), VECTOR),
    "differences": (lambda x, n: x.diff(int(n)), VECTOR),
    "differences of rows": (lambda x, n: torch.diff(x, n=int(n), dim=0), MATRIX),
    "rows in sections": (lambda x, n: torch.vsplit(x, int(n)), MATRIX),
    "columns in sections": (lambda x, n: x.hsplit(int(n)), MATRIX),
    "a vector in sections": (lambda x, n: x.hsplit(int(n)), VECTOR),
    "depths in sections": (lambda x, n: torch.dsplit(x, int(n)), MATRIX.view(1, 3, 4)),
    "diagonal": (lambda x, n: torch.diagonal(x, int(n)), MATRIX),
    "diagonal of two dimensions": (lambda x, n: x.view(1, 3, 4).diagonal(offset=int(n), dim1=-1, dim2=1), MATRIX),
    "diagonal as a copy": (lambda x, n: torch.diag(x, int(n)), MATRIX),
    "turns": (lambda x, n: torch.rot90(x, int(n)), MATRIX),
    "turns the other way": (lambda x, n: x.rot90(int(n), (1, 0)), MATRIX),
    "axes": (lambda x, n: torch.swapaxes(x, 0, int(n)), MATRIX),
    "axis by name": (lambda x, n: x.swapaxes(axis0=int(n), axis1=1), MATRIX),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_program_serves_all_counts(name: str) -> None:
    function, x = CALLS[name]
    static = dy2static.to_static(function)
    calls = [(x.clone().requires_grad_(), torch.tensor(number)) for number in (3, 1, 0, -1, 4, 5, 9, -2, -3, -9)]
    check(function, *calls, static=static, paths=("program",))
    assert len(static.programs) == 1


def test_a_dimension_of_any_size_bounds_nothing() -> None:
    static = dy2static.to_static(
        CALLS["chunk"][0],
        input_spec=[dy2static.InputSpec([None], torch.float32), dy2static.InputSpec([], torch.int64)],
    )
    with pytest.raises(Dy2StaticError) as caught:
        static(VECTOR, torch.tensor(2))
    assert caught.value.code == "D2S238"
