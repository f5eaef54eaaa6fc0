"""What a condition says of sizes is a fact on its path: operators that fit only there need nothing of other calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
import runtime
from dy2static import InputSpec, SignatureError, to_static
from tests.oracle import check, same

SIZES = ((2, 3, 4), (3, 1, 4), (1, 1, 4), (2, 1, 4), (3, 3, 4), (5, 2, 4), (1, 3, 4), (2, 7, 4))


def equal(x):
    if x.shape[1] == 1:
        return x.reshape(x.shape[0], 4) * 2
    return x.sum(1)


def equal_and_more(x, flag=True):
    if x.shape[1] == 1 and flag:
        return x.reshape(x.shape[0], 4) * 2
    return x.sum(1)


def both(x):
    if x.shape[1] == 1 and x.shape[0] == 2:
        return x.reshape(2, 4).sum(0)
    return x.sum((0, 1))


def not_unequal(x):
    if not x.shape[0] != 1:
        return x.squeeze(0).sum(0)
    return x.sum((0, 1))


def neither(x):
    if x.shape[0] != 3 or x.shape[1] != 1:
        return x.sum()
    a, b, c = x.reshape(3, 4)
    return (a * b - c).sum()


def unpacked(x):
    if x.shape[0] != 3:
        return x.sum()
    a, b, c = x
    return a.sum() * b.sum() - c.sum()


def two_sizes(x):
    if x.shape[0] == x.shape[1]:
        return torch.einsum("iij->j", x)
    return x.sum((0, 1))


def kept_in_a_variable(x):
    single = x.shape[1] == 1
    y = x * 2
    if single:
        y = y.reshape(x.shape[0], 4)[:, None]
    return y


def inside_of_another(x):
    if x.sum() > 0:
        if x.shape[1] == 1:
            x = x.reshape(x.shape[0], 4)[:, None] * 3
    return x * 2


FUNCTIONS = [equal, equal_and_more, both, neither, two_sizes, kept_in_a_variable, inside_of_another]
CALLED = [*FUNCTIONS, not_unequal, unpacked]
"""And functions whose operators work differently for such a size: files are not for all."""


def tensors() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(sizes, generator=generator) for sizes in SIZES]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_file_is_for_all_sizes(function: Callable[..., Any], tmp_path: Path) -> None:
    dy2static.save(to_static(function, input_spec=[InputSpec([None, None, 4])]), tmp_path / "saved")
    loaded = runtime.load(tmp_path / "saved")
    for given in tensors():
        x, y = (given.clone().requires_grad_() for _ in range(2))
        found, wanted = loaded(x), function(y)
        same(found, wanted)
        same(*(torch.autograd.grad(one.sum(), by) for one, by in ((found, x), (wanted, y))))


@pytest.mark.parametrize("function", CALLED, ids=lambda f: f.__name__)
def test_calls_of_many_sizes(function: Callable[..., Any]) -> None:
    check(function, *((x,) for x in tensors()))


def after_it(x):
    y = x * 2
    if x.shape[1] == 1:
        y = y + 1
    return y.reshape(x.shape[0], 4)


def on_the_other_path(x):
    if x.shape[1] == 1:
        return x.sum(1)
    return x.reshape(x.shape[0], 4)


@pytest.mark.parametrize("function", [after_it, on_the_other_path], ids=lambda f: f.__name__)
def test_elsewhere_nothing_is_known(function: Callable[..., Any], tmp_path: Path) -> None:
    """These fail in eager, too, for sizes other than 1, or for all of them."""
    with pytest.raises(SignatureError, match="cannot be left open") as caught:
        dy2static.save(to_static(function, input_spec=[InputSpec([None, None, 4])]), tmp_path / "saved")
    assert caught.value.code == "D2S315"


def on_a_path_and_after_it(x):
    y = x * 2
    if x.shape[1] == 1:
        return y.reshape(x.shape[0], 4)
    return y.reshape(x.shape[0], 4) + 1


def test_what_a_path_says_holds_there_only(tmp_path: Path) -> None:
    with pytest.raises(SignatureError, match=r"x\.shape\[0\] \* x\.shape\[1\] == x\.shape\[0\]") as caught:
        dy2static.save(to_static(on_a_path_and_after_it, input_spec=[InputSpec([None, None, 4])]), tmp_path / "saved")
    assert caught.value.location is not None and caught.value.location.text.strip().endswith("+ 1")
