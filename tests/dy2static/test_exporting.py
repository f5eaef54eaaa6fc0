"""What is traced of what is exported: one method, in eval, of arguments that need no gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import InputSpec
from dy2static.exporting import artefact_to_export
from dy2static.static_function import StaticFunction
from runtime.export.inference import variants_for_inference

X = [InputSpec([None, 3], "float32", "x")]


class Coder(nn.Module):
    """Its forward takes more than ``encode``, and raises in training."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(3, 3)

    def forward(self, x, y):
        if self.training:
            raise ValueError("not to be trained")
        return self.encode(x) + y

    def encode(self, x):
        return self.step(x) if x.sum() > 0 else x


class Modal(nn.Module):
    """Computes something else where gradients are enabled."""

    def forward(self, x):
        return x * 2 if torch.is_grad_enabled() else x + 1


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[StaticFunction]:
    """The functions of all traces that a test makes."""
    made: list[StaticFunction] = []
    trace = StaticFunction.trace

    def noted(static: StaticFunction, *args: Any) -> Any:
        made.append(static)
        return trace(static, *args)

    monkeypatch.setattr(StaticFunction, "trace", noted)
    return made


def test_one_method_is_traced_once(traces: list[StaticFunction]) -> None:
    artefact = artefact_to_export(Coder(), X, "encode")
    assert list(artefact.methods) == ["encode"] and len(traces) == 1


def test_what_cannot_be_trained_is_exported(traces: list[StaticFunction]) -> None:
    layer = Coder().train()
    artefact = artefact_to_export(layer, [*X, InputSpec([None, 3], "float32", "y")], "forward")
    assert set(artefact.methods["forward"].variants) == {"eval"} and len(traces) == 1
    assert layer.training and layer.step.training


def test_where_the_function_asks_for_gradients_there_is_a_program_without_and_one_with() -> None:
    first, second = variants_for_inference(artefact_to_export(Modal(), X, "forward"), "forward")
    assert "add" in str(first.program) and "mul" in str(second.program)


def test_what_needs_gradients_is_traced_with_them() -> None:
    def f(x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            return torch.autograd.grad((y * y).sum(), y)[0]

    def g(x):
        y = x.detach().requires_grad_()
        return torch.autograd.grad((y * y).sum(), y)[0]

    for function in (f, g):  # eager raises for the second where gradients are switched off
        assert artefact_to_export(function, X, "forward").methods["forward"].variants


def test_an_error_is_the_functions_own() -> None:
    def f(x):
        raise KeyError("always")

    with pytest.raises(KeyError, match="always"):
        artefact_to_export(f, X, "forward")


def test_a_method_with_its_own_specs_is_exported(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    layer = Coder()
    path = dy2static.onnx.export(layer, tmp_path / "encode.onnx", X, method="encode")
    x = torch.ones(2, 3)
    (got,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), layer.encode(x).detach())


@pytest.mark.parametrize(("layer", "method", "error"), [
    (Coder(), "decode", TypeError), (nn.ModuleList(), "forward", ValueError), (torch.relu, "other", TypeError),
])  # fmt: skip
def test_a_method_that_is_not_there(layer: Any, method: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        artefact_to_export(layer, X, method)
