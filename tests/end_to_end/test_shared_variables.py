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
from dy2static.cli.rewrite import functions, rewrite_functions
from dy2static.conversion import convert
from tests.end_to_end import shared_variables
from tests.oracle import same, tensors

PROGRAMS = [name for name, value in vars(shared_variables).items() if isinstance(value, FunctionType)]
INPUTS = (torch.tensor([0.5, 1.5]), torch.tensor([-0.5, -1.0]), torch.tensor([2.0, 3.0]))


def called(value: Any) -> Any:
    """A result with what its functions give in place of them."""
    if isinstance(value, (list, tuple)):
        return type(value)(called(item) for item in value)
    return ("called", called(value())) if callable(value) else value


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
        found.append((called(result), torch.autograd.grad(torch.stack(parts).sum(), x) if parts else None))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_live(name: str) -> None:
    function = getattr(shared_variables, name)
    same(outcomes(to_static(function), True), outcomes(function, True))


@pytest.fixture(scope="module", params=[False, True], ids=["control_flow", "full"])
def converted_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The programs as ``dy2static convert`` writes them."""
    path = tmp_path_factory.mktemp("converted") / f"shared_variables_{request.param}.py"
    file = text_file.read(str(Path(shared_variables.__file__)))
    text = rewrite_functions(file, functions(file), request.param)
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
    same(outcomes(getattr(converted_file, name), True), outcomes(getattr(shared_variables, name), True))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_other_way(name: str, converted_file: ModuleType) -> None:
    function, written = getattr(shared_variables, name), getattr(converted_file, name)
    for grad in (False, True):
        expected = outcomes(function, grad)
        for other in (convert(function), to_static(function), to_static(written)):
            same(outcomes(other, grad), expected)
