"""``dy2static.onnx.export``: a Program for inference as one ONNX file, control flow included.

    Artefact > Variant -> Program -> rules.require_all -> Translator -> onnx_ir.Model -> checked -> a file

``rules`` is the index of what has a form: ``branches``, ``loops``, ``lists``, ``scalars``, ``writes``, ``failures``,
and ``operators`` for ATen's: PyTorch's own converters write most, ``division`` and ``composites`` the others.
``writer`` knows nodes, graphs and constants.
"""

from __future__ import annotations

from runtime.export.onnx.model import Exported, export_artefact

__all__ = ["Exported", "export_artefact"]
