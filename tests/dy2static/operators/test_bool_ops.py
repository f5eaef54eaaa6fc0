"""``and``, ``or``: what a bool is on the path where it decides is known; results that are one value are that value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import check

X = torch.tensor([1.0, 2.0])
CALLS = (X,), (-X,), (X - 1.5,)

ONE_VALUE: dict[str, Callable[[torch.Tensor], Any]] = {
    "and False": lambda x: bool(x.sum() > 0) and False,
    "or True": lambda x: bool(x.sum() > 0) or True,
    "of three": lambda x: bool(x.sum() > 0) and bool(x[0] > 0) and False,
    "of a comparison of numbers": lambda x: x.sum().item() > 0 and False,
    "not": lambda x: (not x.sum() > 0) and False,
}
SEVERAL: dict[str, Callable[[torch.Tensor], Any]] = {
    "and True": lambda x: bool(x.sum() > 0) and True,
    "or False": lambda x: bool(x.sum() > 0) or False,
    "a tensor": lambda x: (x.sum() > 0) and False,
    "a number": lambda x: x.sum().item() and False,
    "an int": lambda x: bool(x.sum() > 0) and 5,
    "a tensor at last": lambda x: bool(x.sum() > 0) and x * 2,
    "the other one": lambda x: bool(x.sum() > 0) and bool(x[0] > 1),
    "mixed": lambda x: (bool(x.sum() > 0) and False) or bool(x[1] > 0),
}


@pytest.mark.parametrize("name", ONE_VALUE)
def test_one_value_is_known(name: str) -> None:
    function = ONE_VALUE[name]
    check(function, *CALLS)
    program = to_static(function).concrete_program(X).program
    assert not program.block.yields, str(program)


@pytest.mark.parametrize("name", SEVERAL)
def test_others_are_chosen(name: str) -> None:
    check(SEVERAL[name], *CALLS)


def attention(x: torch.Tensor, causal: bool) -> torch.Tensor:
    mask = None if (x > 1).all() else torch.ones(1, 1, 3, 3, dtype=torch.bool).tril()
    is_causal = mask is None and x.shape[2] > 1 and causal
    return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=is_causal)


@pytest.mark.parametrize("causal", [False, True])
def test_a_flag_that_goes_with_a_mask(causal: bool) -> None:
    """Attention takes a mask or the flag, and raises for both."""
    x = torch.rand(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    check(lambda x: attention(x, causal), (x,), (x + 2,))
