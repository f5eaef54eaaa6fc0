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
from tests.end_to_end.list_uses import hold
from tests.end_to_end.nested_uses import CAUGHT, EQUAL, REFUSED
from tests.from_files import module_of

_numbers = itertools.count()


def _load(text: str, folder: Path) -> Callable[..., Any]:
    path = folder / f"nested_{next(_numbers)}.py"
    path.write_text(text)
    found: Callable[..., Any] = module_of(path).f
    return found


def _check(text: str, folder: Path) -> None:
    hold(_load(text, folder), folder, traced=1)


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
