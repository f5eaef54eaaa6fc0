"""Dicts and objects inside of lists whose length only the run knows, changed through the list or by another name."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import TraceError
from tests.end_to_end.list_uses import hold
from tests.end_to_end.row_uses import CAUGHT, DICTS, OBJECTS, REFUSED

_numbers = itertools.count()
_loaded: list[str] = []


@pytest.fixture(autouse=True)
def _forget_modules() -> Iterator[None]:
    yield
    while _loaded:
        del sys.modules[_loaded.pop()]


def _load(text: str, folder: Path) -> Callable[..., Any]:
    path = folder / f"rows_{next(_numbers)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    _loaded.append(path.stem)
    spec.loader.exec_module(module)
    found: Callable[..., Any] = module.f
    return found


def _check(text: str, folder: Path) -> None:
    hold(_load(text, folder), folder, traced=2)


ALL = [*DICTS, *OBJECTS, *CAUGHT]
QUICK = [*DICTS[2::30], *OBJECTS[10::16], *CAUGHT[2::8]]


@pytest.mark.parametrize("text", QUICK, ids=lambda text: str(ALL.index(text)))
def test_equal_eager(text: str, tmp_path: Path) -> None:
    _check(text, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("text", ALL, ids=lambda text: str(ALL.index(text)))
def test_all_equal_eager(text: str, tmp_path: Path) -> None:
    _check(text, tmp_path)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: str(REFUSED.index(text)))
def test_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(_load(text, tmp_path))(torch.ones(3), torch.tensor(3), torch.tensor(True))
    assert caught.value.code in ("D2S226", "D2S229", "D2S253", "D2S254", "D2S260", "D2S264", "D2S266")
    assert caught.value.location is not None and caught.value.location.file.startswith(str(tmp_path))
