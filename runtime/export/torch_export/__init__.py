"""``dy2static.to_exported_program``: a Program for inference as PyTorch's ``ExportedProgram``, control flow included.

    Artefact > Variant -> Program -> rules -> module_of -> torch.export.export -> ExportedProgram

``rules`` is the index of what has a form: ``branches``, ``loops``, ``lists``, ``scalars`` (with ``arithmetic``),
``failures``, and ``operators`` for ATen's. ``translator`` runs Blocks on the tensors that the exporter traces.
"""

from __future__ import annotations

from runtime.export.torch_export.model import Exported, export_artefact

__all__ = ["Exported", "export_artefact"]
