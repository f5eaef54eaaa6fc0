"""Variables that a construct hands over, bound or not, are as in eager: live, written to a file, and both."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.cli import text_file
from dy2static.cli.rewrite import rewrite_file
from dy2static.conversion import convert
from tests.end_to_end import shared_variables

PROGRAMS = [name for name, value in vars(shared_variables).items() if isinstance(value, FunctionType)]
INPUTS = (torch.tensor([0.5, 1.5]), torch.tensor([-0.5, -1.0]), torch.tensor([2.0, 3.0]))


def pictured(value: Any) -> Any:
    """A result as something that compares by value."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist(), value.requires_grad
    if isinstance(value, (list, tuple)):
        return type(value), [pictured(item) for item in value]
    return ("called", pictured(value())) if callable(value) else (type(value), value)


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in a result."""
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return [value] if isinstance(value, torch.Tensor) else []


def outcomes(function: Callable[..., Any], grad: bool) -> list[Any]:
    """What each call gives: value and gradient, or the exception."""
    found: list[Any] = []
    for given in INPUTS:
        x = given.clone().requires_grad_(grad)
        try:
            result = function(x)
        except Exception as error:  # any exception is an outcome
            found.append((type(error), str(error)))
            continue
        parts = [tensor.sum() for tensor in tensors(result) if tensor.requires_grad]
        gradient = torch.autograd.grad(torch.stack(parts).sum(), x)[0].tolist() if parts else None
        found.append((pictured(result), gradient))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_live(name: str) -> None:
    function = getattr(shared_variables, name)
    assert outcomes(to_static(function), True) == outcomes(function, True)


@pytest.fixture(scope="module", params=[False, True], ids=["control_flow", "full"])
def converted_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The programs as ``dy2static convert`` writes them."""
    path = tmp_path_factory.mktemp("converted") / f"shared_variables_{request.param}.py"
    text = rewrite_file(text_file.read(str(Path(shared_variables.__file__))), None, request.param)
    assert text is not None
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_converted_file_runs_by_itself(name: str, converted_file: ModuleType) -> None:
    assert outcomes(getattr(converted_file, name), True) == outcomes(getattr(shared_variables, name), True)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_other_way(name: str, converted_file: ModuleType) -> None:
    function, written = getattr(shared_variables, name), getattr(converted_file, name)
    for grad in (False, True):
        expected = outcomes(function, grad)
        for other in (convert(function), to_static(function), to_static(written)):
            assert outcomes(other, grad) == expected
