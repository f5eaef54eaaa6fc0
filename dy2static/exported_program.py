"""to_exported_program: a layer or function for inference as PyTorch's own ExportedProgram, control flow included.

    program = dy2static.to_exported_program(model, [InputSpec([None, 64], "float32", "x")])
    torch.export.save(program, "net.pt2")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dy2static.exporting import artefact_to_export
from runtime.translated.located import located

if TYPE_CHECKING:
    from torch.export import ExportedProgram


@located
def to_exported_program(layer: Any, input_spec: Any = None, *, method: str = "forward") -> ExportedProgram:
    """A ``torch.export.ExportedProgram`` that computes what a layer or function computes, for inference.

    Args:
        layer: An ``nn.Module`` (in eval mode, whatever it is in now), a function (converted by ``to_static`` or not),
            or a loaded layer.
        input_spec: InputSpecs for the arguments, as ``save`` takes them; sizes of None are told at run time
            (``torch.export.Dim.DYNAMIC``).
        method: The method of a module to export.

    Branches and loops are ``torch.cond`` and ``while_loop`` in its graph. It takes tensors, one after another, and
    returns what the function returns; numbers are tensors without dimensions (int64, float64, bool). Nothing in it
    asks for gradients: PyTorch's gradients of loops are wrong.

    Errors raised: StorageError D2S550 for an operator that has no form there, at its place in the source, and D2S551
    for arguments, results or effects that have none; whatever ``save`` raises.
    """
    from runtime.export.torch_export import export_artefact

    made: ExportedProgram = export_artefact(artefact_to_export(layer, input_spec, method), method).exported
    return made


__all__ = ["to_exported_program"]
