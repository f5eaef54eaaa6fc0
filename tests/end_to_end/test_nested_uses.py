"""Lists inside of lists whose length only the run knows, changed through the outer one or by another name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import TraceError
from tests.end_to_end.nested_uses import CAUGHT, EQUAL, REFUSED
from tests.from_files import module_of
from tests.oracle import check, check_saved

CALLS = [(3, True), (3, False), (2, True), (1, False), (4, True)]
TERMS: dict[str, Any] = {"paths": ("program",), "tolerance": 1e-6, "gradient_tolerance": 1e-5}
_numbers = itertools.count()


def _load(text: str, folder: Path) -> Callable[..., Any]:
    path = folder / f"nested_{next(_numbers)}.py"
    path.write_text(text)
    found: Callable[..., Any] = module_of(path).f
    return found


def _calls(requires_grad: bool) -> list[tuple[torch.Tensor, ...]]:
    x = [0.5, -1.0, 2.0]
    return [
        (torch.tensor(x, requires_grad=requires_grad), torch.tensor(count), torch.tensor(choice))
        for count, choice in CALLS
    ]


def _check(text: str, folder: Path) -> None:
    function = _load(text, folder)
    for requires_grad in (False, True):
        check(function, *_calls(requires_grad), **TERMS)
    converted = dy2static.to_static(function)
    for call in _calls(True)[:1]:
        converted(*call)
    check_saved(function, converted, folder / "saved.d2s", *_calls(True), **TERMS)


@pytest.mark.parametrize("text", EQUAL[8::24], ids=lambda text: str(EQUAL.index(text)))
def test_equal_eager(text: str, tmp_path: Path) -> None:
    _check(text, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("text", EQUAL, ids=lambda text: str(EQUAL.index(text)))
def test_all_equal_eager(text: str, tmp_path: Path) -> None:
    _check(text, tmp_path)


@pytest.mark.parametrize("text", CAUGHT[:8:3], ids=lambda text: str(CAUGHT.index(text)))
def test_caught(text: str, tmp_path: Path) -> None:
    _check(text, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("text", CAUGHT, ids=lambda text: str(CAUGHT.index(text)))
def test_all_caught(text: str, tmp_path: Path) -> None:
    _check(text, tmp_path)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: str(REFUSED.index(text)))
def test_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(_load(text, tmp_path))(torch.ones(3), torch.tensor(3), torch.tensor(True))
    assert caught.value.code in ("D2S226", "D2S251", "D2S253") and caught.value.location is not None
