"""``%`` with a width or precision that a value tells (``*``), where only the run knows that value or the one shown."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check, check_saved

INPUTS = [
    (torch.tensor([1.0, 2.0]) * sign, torch.tensor([2.0, 0.0]) * other) for sign, other in ((1, 1), (-1, 1), (-1, -1))
]


def chosen(x: torch.Tensor, y: torch.Tensor) -> Any:
    width = 3 if x.sum() > 0 else 4
    return "%*d" % (width, 5), "%-*s|" % (width, "a"), "%.*f" % (width, 5.12345), "%0*d %%" % (width, 5)


def staged(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Negative widths are on the left, negative precisions are 0."""
    width, precision = int(x.sum() * 2), int(y.sum())
    text = "%.*s|%*s|%-*s|" % (precision, "abcd", width, "ab", precision, "cd")
    return text, "%*.*f|%+0*.2f|%*.1e" % (width, precision, x.sum().item(), width, 2.5, width, y.sum().item())


def of_other_bases(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%*x|%*o|%-*X" % (int(x.sum() * 2), 255, 6 if y.sum() > 0 else 7, 8, True, int(abs(y.sum())))


def known_widths(x: torch.Tensor, y: torch.Tensor) -> Any:
    number = int(x.sum())
    return "%*d" % (4, number), "%*d" % (-4, number), "%.*f" % (-1, x.sum().item()), "%*s*" % (9, x.sum().item())


def bools(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%*d|%.*f" % (bool(x.sum() > 0), 5, True, x.sum().item())


def named(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%(a)s %(b)5d %(c)x" % {"a": x.sum().item(), "b": 3, "c": 255}


def no_int(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%*d" % (x.sum().item(), 5)


def no_int_on_a_path(x: torch.Tensor, y: torch.Tensor) -> Any:
    width: Any = None
    if x.sum() > 0:
        width = 4
    return "%*d" % (width, int(y.sum()))


def a_tensor(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%*d" % (x.sum() > 0, 5)


def no_hexadecimal(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%*x" % (int(x.sum()), 2.0)


def text_of_the_run(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%d" % f"{x.sum().item()}"


def beside_a_choice(x: torch.Tensor, y: torch.Tensor) -> Any:
    return "%*c" % (3, "b" if x.sum() > 0 else "a"), "*%c*" % (65 if y.sum() > 0 else "a")


@pytest.mark.parametrize("function", [
    chosen, staged, of_other_bases, known_widths, bools, named, no_int_on_a_path, beside_a_choice,
])  # fmt: skip
def test_widths_and_precisions(function, tmp_path):
    static = check(function, *INPUTS)
    check_saved(function, static, tmp_path / "saved.d2s", *INPUTS, paths=["program"])


@pytest.mark.parametrize("function", [no_int, a_tensor, no_hexadecimal, text_of_the_run])
def test_what_is_no_width_or_has_none(function):
    check(function, *INPUTS)


@pytest.mark.parametrize("text", [b"%*d", "%*.3d"])
def test_what_no_format_specification_says_is_refused(text):
    with pytest.raises(TraceError, match="D2S210"):
        to_static(lambda x: text % (3 if x.sum() > 0 else 4, 5))(torch.ones(2))
