"""Exported models in ONNX Runtime, held against eager."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnxruntime
import pytest
import torch

from dy2static.errors import Dy2StaticError
from dy2static.exporting import artefact_to_export
from runtime.export.onnx import Exported, export_artefact
from runtime.export.results import outputs_of
from runtime.ir import ArrayType, Program, ScalarType
from tests.oracle import copied, tensors
from tests.runtime.export.c.harness import BEYOND, built, close


@dataclass
class Model:
    """An exported model that can be run. ``folder``, ``names`` and ``outputs`` are what ``built`` asks for. ``state``:
    what it has written to its buffers so far."""

    session: Any
    program: Program
    exported: Exported
    outputs: dict[int, str]
    state: dict[str, Any] = field(default_factory=dict)

    def run(self, *inputs: torch.Tensor) -> Any:
        """What the function returns. Raises what ONNX Runtime raises."""
        given = {name: one.detach().numpy() for name, one in zip(self.exported.inputs, inputs, strict=True)}
        names = [*self.exported.outputs, *self.exported.state.values()]
        values = dict(zip(names, self.session.run(names, {**given, **self.state})))
        self.state = {name: values[new] for name, new in self.exported.state.items()}
        found = {}
        for index, name in self.outputs.items():
            operand = self.program.block.yields[index]
            type_ = getattr(operand, "type", None)
            number = type_ is None or isinstance(type_, ScalarType)
            items = isinstance(type_, ArrayType) and isinstance(type_.element, ScalarType)
            found[name] = _plain(values[name], number or items)
        return built(self.program.output, self, found)  # type: ignore[arg-type]


def _plain(value: Any, number: bool) -> Any:
    if isinstance(value, list):
        return [_plain(one, number) for one in value]
    return value.item() if number else torch.from_numpy(numpy.asarray(value))


def export(function: Any, folder: Path, specs: Any = None, **options: Any) -> Model:
    """Export, have ONNX's checker look at the file, and load it."""
    artefact = artefact_to_export(function, specs, "forward")
    exported = export_artefact(artefact, folder / "model.onnx", **options)
    onnx.checker.check_model(str(exported.path), full_check=True)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(exported.path), settings, providers=["CPUExecutionProvider"])
    program = exported.program
    return Model(session, program, exported, {one.index: one.name for one in outputs_of(program, "ONNX", "D2S541")})


def check(function: Any, folder: Path, specs: Any, *calls: Sequence[Any], tolerance: float = 1e-5) -> Model:
    """Export and compare each call's results with eager's; where eager raises, the model's run fails."""
    eager = copy.deepcopy(function).eval() if isinstance(function, torch.nn.Module) else function
    model = export(function, folder, specs)
    for call in calls:
        held(model, eager, call, tolerance)
    return model


def held(model: Model, eager: Any, call: Sequence[Any], tolerance: float = 1e-5) -> None:
    """AssertionError if a call of the model does not end as eager's, or says that a number is beyond what it holds."""
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            wanted = eager(*copied(call))
    except Exception as error:
        try:
            got = model.run(*tensors(call))
        except Exception as raised:
            assert "onnxruntime" in type(raised).__module__, f"{raised!r}, and eager raises {error!r}"
            return
        raise AssertionError(f"the model gives {got}, and eager raises {error!r}") from error
    try:
        got = model.run(*tensors(call))
    except Exception as error:
        assert BEYOND in str(error), error
        return
    close(got, wanted, tolerance)


def operators(model: Model) -> list[str]:
    """The operator of every node of a model, those of graphs inside included."""

    def walk(graph: Any) -> list[str]:
        found = []
        for node in graph.node:
            found.append(node.op_type)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    found += walk(attribute.g)
        return found

    return walk(onnx.load(str(model.exported.path)).graph)


def refused(function: Any, folder: Path, specs: Any, code: str) -> Dy2StaticError:
    """The error with which an export is refused; nothing is left on the disk."""
    with pytest.raises(Dy2StaticError) as raised:
        export_artefact(artefact_to_export(function, specs, "forward"), folder / "model.onnx")
    assert raised.value.code == code, str(raised.value)
    assert not list(folder.iterdir())
    return raised.value
