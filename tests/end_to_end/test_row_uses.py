"""Dicts and objects inside of lists whose length only the run knows, changed through the list or by another name."""

from __future__ import annotations

import collections
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
from runtime.tracer.ambient import objects
from tests.end_to_end.row_uses import CAUGHT, DICTS, OBJECTS, REFUSED

CALLS = [(3, True), (3, False), (2, True), (1, False), (4, True)]
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


def _pictured(value: Any, known: dict[int, int], tensors: list[torch.Tensor]) -> Any:
    """A value with numbers in place of objects, the same number for the same dict, list or object."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return "tensor", value.dtype, tuple(value.shape), value.requires_grad
    if type(value) in (int, float, str, bool, type(None)):
        return type(value), value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple, [_pictured(item, known, tensors) for item in value]
    if id(value) in known:
        return "again", known[id(value)]
    known[id(value)] = len(known)
    if isinstance(value, (list, collections.deque)):
        return type(value), [_pictured(item, known, tensors) for item in value]
    if isinstance(value, dict):
        held = dict(value)
    else:
        held = value._asdict() if isinstance(value, tuple) else objects.attributes(value)
    kind = dict if isinstance(value, dict) else type(value).__name__
    return kind, [(key, _pictured(item, known, tensors)) for key, item in held.items()]


def _run(function: Callable[..., Any], count: int, choice: bool, requires_grad: bool) -> tuple[Any, list[Any]]:
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=requires_grad)
    try:
        result = function(x, torch.tensor(count), torch.tensor(choice))
    except (LookupError, TypeError, AttributeError) as error:
        return (type(error), str(error)), []
    tensors: list[torch.Tensor] = []
    picture = _pictured(result, {}, tensors)
    values: list[Any] = [tensor.detach().clone() for tensor in tensors]
    kept = [tensor for tensor in tensors if tensor.requires_grad]
    if kept:
        total = sum((tensor * (place + 1)).sum() for place, tensor in enumerate(kept))
        assert isinstance(total, torch.Tensor)
        values.append(torch.autograd.grad(total, x, allow_unused=True)[0])
    return picture, values


def _hold(function: Callable[..., Any], other: Callable[..., Any], requires_grad: bool) -> None:
    for count, choice in CALLS:
        expected, got = (_run(one, count, choice, requires_grad) for one in (function, other))
        assert got[0] == expected[0], (count, choice)
        torch.testing.assert_close(got[1], expected[1])


def _check(text: str, folder: Path) -> None:
    function = _load(text, folder)
    for requires_grad in (False, True):
        _hold(function, dy2static.to_static(function), requires_grad)
    converted = dy2static.to_static(function)
    for choice in (True, False):
        _run(converted, 3, choice, True)
    dy2static.save(converted, folder / "saved.d2s")
    _hold(function, dy2static.load(folder / "saved.d2s"), True)


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
