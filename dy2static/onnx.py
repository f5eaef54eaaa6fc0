"""dy2static.onnx.export: a layer or function for inference as one ONNX file, control flow included.

    dy2static.onnx.export(model, "net.onnx", [InputSpec([None, 64], "float32", "x")])
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dy2static.exporting import artefact_to_export
from runtime.translated.located import located


@located
def export(
    layer: Any, path: str | os.PathLike[str], input_spec: Any = None, *, opset_version: int | None = None,
    method: str = "forward", runtime: str = "onnxruntime",
) -> Path:  # fmt: skip
    """Write an ONNX model that computes what a layer or function computes. Returns the file.

    Args:
        layer: An ``nn.Module`` (in eval mode, whatever it is in now), a function (converted by ``to_static`` or not),
            or a loaded layer.
        path: The file. It is made, or replaced.
        input_spec: InputSpecs for the arguments, as ``save`` takes them; sizes of None are told at run time.
        opset_version: The version of ONNX's operators, 18 to 23; else 18.
        method: The method of a module to export.
        runtime: What runs the file, ``"onnxruntime"`` or ``"openvino"``: what that cannot run, or would run to another
            result, is refused. Where it is installed, it has to load the file.

    Errors raised: StorageError D2S540 for an operator that has no form in ONNX, at its place in the source, and D2S541
    for arguments, results or effects that have none; whatever ``save`` raises; ImportError without the packages of
    ``dy2static[onnx]``. The disk is touched only when everything else has worked.
    """
    from runtime.export.onnx import export_artefact

    artefact = artefact_to_export(layer, input_spec, method)
    return export_artefact(artefact, path, method, opset_version, runtime).path


__all__ = ["export"]
