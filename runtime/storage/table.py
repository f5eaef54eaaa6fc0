"""One safetensors table, written tensor by tensor and read without a second copy in memory.

The bytes are those of the safetensors format: a header's length, the header (JSON), the tensors' bytes in a row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import torch

from runtime.errors import StorageError
from runtime.storage.document import read_json

DTYPES: dict[str, torch.dtype] = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "U16": torch.uint16, "I16": torch.int16,
    "U32": torch.uint32, "I32": torch.int32, "U64": torch.uint64, "I64": torch.int64,
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "C64": torch.complex64,
}  # fmt: skip
"""The format's dtypes that torch has too; tensors of other dtypes are stored as bytes (U8)."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_CHUNK = 1 << 24


@dataclass(frozen=True)
class Raw:
    """A tensor of the table: its dtype's name, its shape and its bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview


def write_table(stream: IO[bytes], tensors: Mapping[str, torch.Tensor]) -> None:
    """Write the tensors, in order, row-major. The same tensors give the same bytes."""
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        dtype = _NAMES.get(tensor.dtype)
        shape = list(tensor.shape) if dtype else [end - begin]
        header[name] = {"dtype": dtype or "U8", "shape": shape, "data_offsets": [begin, end]}
    head = json.dumps(header, separators=(",", ":")).encode("ascii")
    head += b" " * (-len(head) % 8)
    stream.write(len(head).to_bytes(8, "little"))
    stream.write(head)
    for tensor in tensors.values():
        flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
        data = flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")
        for at in range(0, len(data), _CHUNK):
            stream.write(data[at : at + _CHUNK])


def table_size(tensors: Mapping[str, torch.Tensor]) -> int:
    """About how many bytes ``write_table`` will write; never fewer."""
    return sum(tensor.numel() * tensor.element_size() + 2 * len(name) * 6 + 1000 for name, tensor in tensors.items())


def read_table(data: memoryview, what: str) -> dict[str, Raw]:
    """The tensors of a table, still as bytes of ``data``. Errors raised: StorageError if it is malformed."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise StorageError(f"{what} is cut off in its header", code="D2S512")
    body = data[8 + length :]
    found: dict[str, Raw] = {}
    expected = 0
    for name, node in read_json(bytes(data[8 : 8 + length]), f"{what}, header").mapping().items():
        fields = node.record("dtype", "shape", "data_offsets")
        dtype = fields["dtype"].choice(*DTYPES)
        shape = tuple(size.integer(0) for size in fields["shape"].items())
        begin, end = (offset.integer(0) for offset in fields["data_offsets"].items(2))
        if begin != expected or end - begin != math.prod(shape) * DTYPES[dtype].itemsize or end > len(body):
            fields["data_offsets"].fail(f"these are not the {math.prod(shape)} numbers of this tensor")
        expected = end
        found[name] = Raw(dtype, shape, body[begin:end])
    if expected != len(body):
        raise StorageError(f"{what}: {len(body) - expected} bytes belong to no tensor", code="D2S512")
    return found


def copy_of(raw: Raw, dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...] | None) -> torch.Tensor:
    """The tensor, in memory of its own, with the wanted memory layout."""
    made = torch.empty(shape, dtype=dtype, device="cpu")
    if made.numel():
        made.reshape(-1).view(torch.uint8).copy_(torch.frombuffer(raw.data, dtype=torch.uint8))
    if stride is None:
        return made
    return torch.empty_strided(shape, stride, dtype=dtype, device="cpu").copy_(made)
