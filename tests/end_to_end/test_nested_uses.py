"""Lists inside of lists whose length only the run knows, changed through the outer one or by another name."""

from __future__ import annotations

import collections
import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import TraceError
from tests.end_to_end.nested_uses import CAUGHT, EQUAL, REFUSED

CALLS = [(3, True), (3, False), (2, True), (1, False), (4, True)]
_numbers = itertools.count()


def _load(text: str, folder: Path) -> Callable[..., Any]:
    path = folder / f"nested_{next(_numbers)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., Any] = module.f
    return found


def _pictured(value: Any, known: dict[int, int], tensors: list[torch.Tensor]) -> Any:
    """A value with numbers in place of objects, the same number for the same list or dict."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return "tensor", value.dtype, tuple(value.shape), value.requires_grad
    if isinstance(value, (list, dict, collections.deque)) and id(value) in known:
        return "again", known[id(value)]
    if not isinstance(value, (list, dict, tuple, collections.deque)):
        return type(value), value
    if not isinstance(value, tuple):
        known[id(value)] = len(known)
    items = list(value.items()) if isinstance(value, dict) else list(value)
    return type(value), [_pictured(item, known, tensors) for item in items]


def _run(function: Callable[..., Any], count: int, choice: bool, requires_grad: bool) -> tuple[Any, list[torch.Tensor]]:
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=requires_grad)
    try:
        result = function(x, torch.tensor(count), torch.tensor(choice))
    except IndexError as error:
        return str(error), []
    tensors: list[torch.Tensor] = []
    picture = _pictured(result, {}, tensors)
    values = [tensor.detach().clone() for tensor in tensors]
    kept = [tensor for tensor in tensors if tensor.requires_grad]
    if kept:
        total = sum((tensor * (place + 1)).sum() for place, tensor in enumerate(kept))
        assert isinstance(total, torch.Tensor)
        values.append(torch.autograd.grad(total, x)[0])
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
    _run(converted, 3, True, True)
    dy2static.save(converted, folder / "saved.d2s")
    _hold(function, dy2static.load(folder / "saved.d2s"), True)


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
