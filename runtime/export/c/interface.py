"""What a caller of an exported function gives and gets: names that C takes, and the form of each value.

    x, (y, {"mask": m})      ->      inputs: x      outputs: out_0, out_1_mask

Where paths return different structures, a number says which it is, and those of the others are None:

    y  or  (y, n)            ->      outputs: out_which, out_if0, out_if1_0, out_if1_1
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from runtime.errors import StorageError
from runtime.export import results
from runtime.export.results import Result, plain_name
from runtime.ir import Program, TensorType

DTYPES: dict[torch.dtype, str] = {
    torch.float32: "FLOAT32", torch.float64: "FLOAT64", torch.int64: "INT64", torch.int32: "INT32",
    torch.int16: "INT16", torch.int8: "INT8", torch.uint8: "UINT8", torch.bool: "BOOL",
}  # fmt: skip
"""The dtypes of exported tensors, and their names in C."""

MAX_RANK = 8


@dataclass(frozen=True)
class Given:
    """A tensor that the caller gives."""

    name: str
    said: str
    """As the user would write it."""
    type: TensorType


def inputs_of(program: Program) -> list[Given]:
    """The arguments. Errors raised: StorageError for one that is no tensor of a dtype that C has."""
    taken: set[str] = set()
    found = []
    for one in program.inputs:
        type_ = one.var.type
        if not isinstance(type_, TensorType) or type_.dtype not in DTYPES or type_.shape is None or (
                len(type_.shape) > MAX_RANK or type_.device is not None):  # fmt: skip
            raise StorageError(
                f"'{one.name}' cannot be an argument of exported C: {type_}",
                hint=f"Export tensors of the CPU with at most {MAX_RANK} dimensions, of "
                f"{', '.join(str(dtype).removeprefix('torch.') for dtype in DTYPES)}.",
                code="D2S531",
            )
        found.append(Given(plain_name(one.name, taken), one.name, type_))
    return found


def outputs_of(program: Program) -> list[Result]:
    """The results, in the order of the output's tree. Errors raised: StorageError for containers that C has not."""
    return results.outputs_of(program, "exported C", "D2S531")


__all__ = ["DTYPES", "MAX_RANK", "Given", "Result", "inputs_of", "outputs_of"]
