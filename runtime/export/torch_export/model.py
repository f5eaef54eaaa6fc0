"""From an artefact to PyTorch's ``ExportedProgram``."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from runtime.errors import StorageError
from runtime.export.inference import program_for_inference, variants_for_inference
from runtime.export.results import outputs_of
from runtime.export.torch_export.module import module_of
from runtime.export.torch_export.rules import rule_of
from runtime.export.torch_export.sizes import sizes_to_trace
from runtime.export.torch_export.translator import Run
from runtime.export.torch_export.values import Refused
from runtime.ir import Operator, Program, TensorType
from runtime.ir.location import Location
from runtime.storage.artefact import Artefact, Variant
from runtime.torch_internals.export_settings import any_size


@dataclass(frozen=True)
class Exported:
    """What was exported, the names of what a caller gives, and the Program that it computes."""

    exported: Any
    inputs: tuple[str, ...]
    program: Program


def export_artefact(artefact: Artefact, method: str = "forward") -> Exported:
    """A method's Program for inference as a ``torch.export.ExportedProgram``.

    Errors raised: StorageError, D2S550 for an operator without a form in such a program, D2S551 for arguments, results
    or effects that have none.
    """
    refused: StorageError | None = None
    for variant in variants_for_inference(artefact, method):  # what is fast without gradients may have no form
        try:
            return _exported(artefact, variant)
        except StorageError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _exported(artefact: Artefact, variant: Variant) -> Exported:
    program, tensors = program_for_inference(artefact, variant, "torch")
    for op in program.block.walk():
        try:
            rule_of(op)
        except Refused as error:
            raise _refusal(op, error.reason) from None
    if not outputs_of(program, "torch.export", "D2S551"):
        raise _no_form("the function returns no value that depends on the run", "Return a tensor or a number.")
    run = Run(rule_of)
    try:
        module, names = module_of(program, tensors, _unsaved(artefact), run)
        sizes = sizes_to_trace(program)
        examples = tuple(_example(one.var.type, one.name, sizes) for one in program.inputs)
        open_dims = tuple(_open(one.var.type) for one in program.inputs)
        made = _traced(module, examples, open_dims)
    except Refused as error:
        raise _refusal(error.op, error.reason) from None
    except StorageError:
        raise
    except Exception as error:
        raise _refusal(run.last, f"PyTorch's exporter says {_first_line(error)}") from error
    return Exported(made, names, variant.program)


def _unsaved(artefact: Artefact) -> set[str]:
    """The buffers that the state dict does not have."""
    return {f"{one.path}.{name}" if one.path else name
            for one in artefact.modules for name, _, saved in one.buffers if not saved}  # fmt: skip


def _traced(module: torch.nn.Module, examples: tuple[torch.Tensor, ...], open_dims: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings(), torch.no_grad(), any_size():
        warnings.simplefilter("ignore")
        return torch.export.export(module, examples, dynamic_shapes=open_dims, strict=False)


def _example(type_: Any, name: str, sizes: dict[str, int]) -> torch.Tensor:
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None or type_.device is not None:
        raise _no_form(f"'{name}' cannot be an argument of an exported program: {type_}",
                       "Export tensors of the CPU, of a known dtype and number of dimensions.")  # fmt: skip
    shape = [sizes[dim] if isinstance(dim, str) else dim for dim in type_.shape]
    return torch.zeros(shape, dtype=type_.dtype)


def _open(type_: Any) -> dict[int, Any]:
    return {dim: torch.export.Dim.DYNAMIC for dim, size in enumerate(type_.shape) if isinstance(size, str)}


def _no_form(summary: str, hint: str, location: Location | None = None) -> StorageError:
    return StorageError(summary, hint=hint, location=location, code="D2S551")


def _refusal(op: Operator | None, reason: str) -> StorageError:
    name = "a result" if op is None else op.name
    return StorageError(
        f"torch.export has no form for {name}: {reason}",
        hint="Compute this outside of what is exported, or write it with what docs/export.md lists.",
        location=None if op is None else op.location, code="D2S550")  # fmt: skip


_SYMBOL = re.compile(r"\b[suz]u?f?\d+\b")
"""PyTorch's names of sizes, which say nothing to a user."""


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    said = _SYMBOL.sub("a size", lines[0][:300]) if lines else ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


__all__ = ["Exported", "export_artefact"]
