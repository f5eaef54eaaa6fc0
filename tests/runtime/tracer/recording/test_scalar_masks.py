"""Masks without dimensions in indices of every form: read, written, added to; with gradients; both values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from runtime.tracer.recording import scalar_masks
from tests import oracle

Index = Callable[[torch.Tensor, torch.Tensor], Any]

INDICES: dict[str, Index] = {
    "m": lambda m, i: m,
    "(m,)": lambda m, i: (m,),
    "m, 0": lambda m, i: (m, 0),
    "0, m": lambda m, i: (0, m),
    "m, :": lambda m, i: (m, slice(None)),
    ":, m": lambda m, i: (slice(None), m),
    "..., m": lambda m, i: (Ellipsis, m),
    "m, ...": lambda m, i: (m, Ellipsis),
    "None, m": lambda m, i: (None, m),
    "m, None": lambda m, i: (m, None),
    "m, m": lambda m, i: (m, m),
    "m, not m": lambda m, i: (m, ~m),
    "m, i": lambda m, i: (m, i),
    "i, m": lambda m, i: (i, m),
    "i, :, m": lambda m, i: (i, slice(None), m),
    "m, 1:, i": lambda m, i: (m, slice(1, None), i),
    "i[0], m": lambda m, i: (i[0], m),
    "m, [0, 1]": lambda m, i: (m, [0, 1]),
    "m, rows": lambda m, i: (m, i > 0),
    "a byte": lambda m, i: m.to(torch.uint8),
    "a byte, i[0]": lambda m, i: (m.to(torch.uint8), i[0]),
    "bool": lambda m, i: bool(m),
    "bool, 0": lambda m, i: (bool(m), 0),
    "int, bool": lambda m, i: (int(i[0]), bool(m)),
    "True, int": lambda m, i: (True, int(i[0])),
    ":int, False": lambda m, i: (slice(None, int(i[0])), False),
}  # fmt: skip
BESIDE_INDICES = {"m, m", "m, not m", "m, i", "i, m", "i, :, m", "m, 1:, i", "m, [0, 1]", "m, rows"}
"""Whether what is selected has one element or none decides whether such indices fit each other."""


def _read(x: torch.Tensor, index: Any) -> torch.Tensor:
    return x[index] * 2


def _write(x: torch.Tensor, index: Any) -> torch.Tensor:
    x[index] = 7.0
    return x


def _write_a_row(x: torch.Tensor, index: Any) -> torch.Tensor:
    x[index] = x.flatten()[0] * 3
    return x


def _add(x: torch.Tensor, index: Any) -> torch.Tensor:
    x[index] += 1
    return x


USES = {"read": _read, "write": _write, "write a tensor": _write_a_row, "add": _add}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)], ids=str)
def test_as_eager(shape: tuple[int, ...], index: str, use: str) -> None:
    def asked(x: torch.Tensor, c: torch.Tensor, i: torch.Tensor) -> Any:
        y = x * 1
        return USES[use](y, INDICES[index](c.sum() > 0, i))

    count = max(torch.Size(shape).numel(), 1)
    x = torch.arange(1.0, 1 + count).reshape(shape).requires_grad_()
    i = torch.tensor([1, 0])
    try:
        oracle.check(asked, (x, torch.ones(2), i), (x, -torch.ones(2), i))
    except dy2static.Dy2StaticError as error:
        assert index in BESIDE_INDICES and error.code in ("D2S231", "D2S235"), error


def test_in_a_file(tmp_path: Any) -> None:
    def asked(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.sum()
        y[y > 0] = 3.0
        return y, (x * 2)[x.sum() < 0]

    dy2static.save(dy2static.to_static(asked), tmp_path / "f.d2s", input_spec=[dy2static.InputSpec([3])])
    loaded = dy2static.load(tmp_path / "f.d2s")
    for x in (torch.ones(3), -torch.ones(3)):
        oracle.same(loaded(copy.copy(x)), asked(x))


def test_an_index_without_such_a_mask_is_left_alone() -> None:
    assert scalar_masks.without((torch.tensor([True]), 0, None, torch.tensor(1))) is None
    assert scalar_masks.without([True, False]) is None
