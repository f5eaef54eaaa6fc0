"""Tables are safetensors files, and their tensors come back bit by bit."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import safetensors.torch
import torch

from runtime.errors import StorageError
from runtime.storage.table import DTYPES, copy_of, read_table, write_table


def written(tensors: dict[str, torch.Tensor]) -> bytes:
    stream = io.BytesIO()
    write_table(stream, tensors)
    return stream.getvalue()


def any_bits(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    bits = torch.randint(0, 2 if dtype is torch.bool else 256, (torch.Size(shape).numel() * dtype.itemsize,))
    return bits.to(torch.uint8).view(dtype).reshape(shape)


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().flatten().view(torch.uint8).tolist()


TENSORS = {
    **{name: any_bits(dtype, 2, 3) for name, dtype in DTYPES.items()},
    "scalar": torch.tensor(1.5), "empty": torch.empty(0, 3), "transposed": torch.arange(6.0).reshape(2, 3).t(),
    "last ä": torch.ones(1),
}  # fmt: skip


def test_library_reads_what_is_written() -> None:
    found = safetensors.torch.load(written(TENSORS))
    assert list(found) and set(found) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert found[name].dtype is tensor.dtype and found[name].shape == tensor.shape
        assert bits(found[name]) == bits(tensor)


def test_tensors_come_back() -> None:
    found = read_table(memoryview(bytearray(written(TENSORS))), "table")
    for name, tensor in TENSORS.items():
        again = copy_of(found[name], tensor.dtype, tuple(tensor.shape), None)
        assert again.shape == tensor.shape and again.is_contiguous()
        assert bits(again) == bits(tensor)


def test_same_tensors_give_the_same_bytes() -> None:
    assert written(TENSORS) == written(dict(TENSORS))


def corrupt(change: Any) -> bytes:
    data = written({"a": torch.ones(2), "b": torch.ones(3)})
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    change(header)
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data[8 + length :]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda h: h["a"].update(dtype="F99"), r"\['a'\]\.dtype: expected"),
        (lambda h: h["a"].update(shape=[3]), r"\['a'\]\.data_offsets: these are not the 3 numbers"),
        (lambda h: h["a"].update(data_offsets=[4, 12]), "data_offsets"),
        (lambda h: h["b"].update(data_offsets=[0, 12]), "data_offsets"),
        (lambda h: h["b"].update(data_offsets=[8, 200], shape=[48]), "data_offsets"),
        (lambda h: h.pop("b"), "12 bytes belong to no tensor"),
    ],
)
def test_wrong_header_is_refused(change: Any, problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        read_table(memoryview(corrupt(change)), "table")


@pytest.mark.parametrize("data", [b"", b"\x00" * 7, b"\xff" * 20, (100).to_bytes(8, "little") + b"{}"])
def test_cut_off_table_is_refused(data: bytes) -> None:
    with pytest.raises(StorageError, match="cut off in its header"):
        read_table(memoryview(data), "table")
