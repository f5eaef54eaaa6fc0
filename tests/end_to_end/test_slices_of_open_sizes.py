"""Slices with plain bounds where sizes are open: how long they are is known of sizes of 2 and more; 0 and 1 are calls
of other Programs. All as in eager, with gradients, live and loaded."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import load, save, to_static
from runtime.errors import SignatureError
from tests.from_files import module_of
from tests.oracle import same

CUTS = ("-1:", ":-1", "1:", "-2:", ":-2", "2:", "-3:", ":3", "1:-1", "-1::2", "::2", "-2:-1", "0:1", "5:", "-9:")
USES = {
    "as it is": "return {cut} * 2",
    "its length": "return {cut}.shape, {cut}.sum()",
    "a branch by its length": (
        "y = {cut}\n    if y.shape[1] == 1:\n        return y.expand(y.shape[0], 3) + 1\n    return y * y.shape[1]"),
    "added to the rest": "return torch.cat([{cut}, x[:, :-1] * 2], 1)",
    "in a loop": (
        "n = 0\n    while x.sum() < 50 and n < 4:\n        x = torch.cat([x, {cut}.abs() + 1], 1)\n        n += 1\n"
        "    return x, n"),
    "on a path": "if x.sum() > 3:\n        x = {cut}\n    return x.sum(1), x.shape[0]",
    "written": "y = x * 1\n    y{where} = y{where} * 3\n    return y",
    "rows, too": "return x[-1:], x[1:].sum(0), {cut}",
    "a number": "return {cut}.numel(), len(x), {cut}.mean(1)",
}  # fmt: skip
SIZES = ((2, 5), (3, 7), (4, 2), (2, 9), (1, 6), (3, 1), (3, 3), (0, 4), (3, 0), (1, 1), (5, 8))
CASES = [*itertools.product(CUTS, USES)]


def program(cut: str, use: str, folder: Path) -> Any:
    body = USES[use].replace("{cut}", f"x[:, {cut}]").replace("{where}", f"[:, {cut}]")
    path = folder / "cut.py"
    path.write_text(f"import torch\n\n\ndef f(x):\n    {body}\n")
    return module_of(path).f


def outcome(function: Any, size: tuple[int, int], needs: bool) -> tuple[Any, Any]:
    """What a call gives, and the gradient of its floats; an error by its kind."""
    x = torch.linspace(-1, 2, size[0] * size[1]).reshape(size).requires_grad_(needs)
    try:
        found = function(x)
    except (RuntimeError, IndexError, ValueError) as error:
        assert "D2S" not in str(error), error
        return type(error).__name__, None
    parts = [one for one in (found if isinstance(found, tuple) else (found,)) if isinstance(one, torch.Tensor)]
    total = sum((one * one).sum() for one in parts)
    if needs and isinstance(total, torch.Tensor) and total.requires_grad:
        total.backward()
    return found, x.grad


@pytest.mark.sample(4)
@pytest.mark.parametrize("needs", [False, True], ids=["plain", "gradient"])
@pytest.mark.parametrize(("cut", "use"), CASES)
def test_as_eager(cut: str, use: str, needs: bool, tmp_path: Path) -> None:
    function = program(cut, use, tmp_path)
    static = to_static(function)
    for size in (*SIZES, *SIZES):
        same(outcome(static, size, needs), outcome(function, size, needs), tolerance=1e-6)


@pytest.mark.sample(10)
@pytest.mark.parametrize(("cut", "use"), CASES)
def test_loaded(cut: str, use: str, tmp_path: Path) -> None:
    function = program(cut, use, tmp_path)
    static = to_static(function)
    for size in SIZES[:4]:
        outcome(static, size, False)
    try:
        save(static, tmp_path / "kept")
    except SignatureError as error:  # where 0 and 1 are sizes like others, it is not known that what is kept fits
        assert error.code == "D2S316" and use == "a branch by its length"
        return
    loaded = load(tmp_path / "kept")
    for size in SIZES[:4]:
        same(outcome(loaded, size, False), outcome(function, size, False))


def test_the_length_of_what_is_cut_off_the_end_is_a_number() -> None:
    @to_static
    def last(x: torch.Tensor) -> torch.Tensor:
        return x[:, -1:] + x[:, :-1]

    for size in ((2, 5), (3, 7), (4, 9)):
        last(torch.ones(size))
    text = next(text for text in map(str, last.programs) if "assume" in text)
    assert "Max" not in text and "f32[s0, 1]" in text, text
