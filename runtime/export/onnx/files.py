"""A model as files: checked by ONNX and ONNX Runtime before it stands where it was asked for, and never half written.

    net.onnx                              the model and its weights
    net.onnx, net.onnx.3f9c....data       weights of more than 2 GiB, which an ONNX file cannot hold, beside
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

import onnx
import onnx_ir

from runtime.errors import StorageError
from runtime.ir.location import Location

MOST_BYTES = 2**31 - 2**20
"""Beyond this, a file of protocol buffers cannot hold the weights."""
_SMALL = 1024
"""Tensors below so many bytes stay in the model."""
_REPORT = "This is a fault of the export; please report it."


class Checked:
    """A model that ONNX's checker and, where it is installed, the runtime have taken. Close it after ``put``.

    Errors raised: StorageError, D2S540 and D2S541, for a model that they do not take.
    """

    def __init__(self, model: Any, target: Path, runtime: str = "onnxruntime") -> None:
        load = _LOADERS[runtime]
        self._target = target
        self._room: Path | None = None
        self._data: bytes | None = None
        size = sum(one.const_value.nbytes for one in model.graph.initializers.values())
        if size <= MOST_BYTES:
            proto = onnx_ir.to_proto(model)
            _check(proto)
            self._data = proto.SerializeToString()
            load(model, self._data)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        self._room = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            self._beside = f"{target.name}.{uuid.uuid4().hex}.data"
            onnx_ir.save(model, self._room / target.name, format="protobuf", external_data=self._beside,
                         size_threshold_bytes=_SMALL)  # fmt: skip
            _check(str(self._room / target.name))
            load(model, str(self._room / target.name))
        except BaseException:
            self.close()
            raise

    def put(self) -> None:
        """Write the model where it was asked for, or put it there. What was there before goes with its weights."""
        target = self._target
        old = _weights_of(target)
        if self._room is None:
            assert self._data is not None
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, made = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self._data)
                os.chmod(made, 0o644)
                os.replace(made, target)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(made)
                raise
        else:
            beside = target.with_name(self._beside)
            os.replace(self._room / self._beside, beside)  # first: a model without its weights is never there
            try:
                os.chmod(beside, 0o644)
                os.chmod(self._room / target.name, 0o644)
                os.replace(self._room / target.name, target)
            except BaseException:
                beside.unlink()
                raise
        for one in old:
            with contextlib.suppress(FileNotFoundError):
                one.unlink()

    def close(self) -> None:
        """Leave nothing of what was written to be checked."""
        if self._room is not None:
            shutil.rmtree(self._room, ignore_errors=True)


def _weights_of(target: Path) -> list[Path]:
    """Files of weights that an earlier export has put beside a model."""
    name = re.compile(re.escape(target.name) + r"\.[0-9a-f]{32}\.data")
    return [one for one in target.parent.iterdir() if name.fullmatch(one.name)] if target.parent.is_dir() else []


def _check(model: Any) -> None:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        raise StorageError(f"ONNX does not take the model: {str(error)[:400]}", hint=_REPORT, code="D2S541") from None


def _place_in(model: Any, said: str) -> Location | None:
    """The user's line that a node was written for whose name is in what a runtime says."""
    nodes = onnx_ir.traversal.RecursiveGraphIterator(model.graph)
    return next((node.meta.get("place") for node in nodes if f"'{node.name}'" in said), None)


def _load(model: Any, file: bytes | str) -> None:
    try:
        import onnxruntime
    except ImportError:
        return
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise StorageError(f"ONNX Runtime does not take the model: {str(error)[:400]}",
                           hint="It has no kernel for this dtype, most often: convert what the operator is given.",
                           location=_place_in(model, str(error)), code="D2S540") from None  # fmt: skip


def _load_in_openvino(model: Any, file: bytes | str) -> None:
    try:
        import openvino
    except ImportError:
        return
    core = openvino.Core()
    try:
        core.compile_model(core.read_model(io.BytesIO(file) if isinstance(file, bytes) else file), "CPU")
    except Exception as error:
        said = [line for line in str(error).splitlines() if line.strip() and not line.startswith("Exception from")]
        raise StorageError(f"OpenVINO does not take the model: {' '.join(said)[:400]}",
                           hint="Export it for ONNX Runtime, or leave out what it names.",
                           code="D2S540") from None  # fmt: skip


_LOADERS = {"onnxruntime": _load, "openvino": _load_in_openvino}

__all__ = ["MOST_BYTES", "Checked"]
