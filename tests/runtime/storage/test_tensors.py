"""Ties, shared memory and memory layout survive."""

from __future__ import annotations

import io

import pytest
import torch

from runtime.errors import StorageError
from runtime.storage.document import Node, read_json, write_json
from runtime.storage.table import read_table, write_table
from runtime.storage.tensors import pack, unpack
from tests.oracle import same


def round_trip(*tensors: torch.Tensor) -> list[torch.Tensor]:
    entries, table = pack([f"t{index}" for index in range(len(tensors))], tensors)
    stream = io.BytesIO()
    write_table(stream, table)
    found = read_table(memoryview(bytearray(stream.getvalue())), "table")
    (again,) = unpack([read_json(write_json(entries), "tensors")], found, None)
    same(again, list(tensors), bits=True)
    return again


def test_each_dtype_survives() -> None:
    dtypes = [torch.complex128, torch.complex64, torch.bfloat16, torch.bool, torch.uint64, torch.float16]
    round_trip(*(torch.ones(2, 3, dtype=dtype) for dtype in dtypes))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(4, 3).t(),
        torch.randn(1, 3, 1)[:, :, :],
        torch.randn(()),
        torch.empty(0, 3),
    ],
)
def test_dense_layout_survives(tensor: torch.Tensor) -> None:
    (again,) = round_trip(tensor)
    wanted = [step for size, step in zip(tensor.shape, tensor.stride()) if size > 1]
    assert [step for size, step in zip(again.shape, again.stride()) if size > 1] == wanted


def test_gaps_and_expansion_are_not_stored() -> None:
    base = torch.arange(1000.0)
    entries, table = pack(["a", "b"], [base[::100], torch.arange(3).expand(4, 3)])
    assert [tuple(t.shape) for t in table.values()] == [(10,), (4, 3)]
    round_trip(base[::100], torch.arange(3).expand(4, 3))


def test_views_of_one_memory_stay_so() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    whole, row, column = round_trip(base, base[1], base[:, 2])
    row.fill_(7.0)
    assert whole[1].eq(7.0).all() and column[1] == 7.0
    assert whole.shape == (3, 4) and column.stride() == (4,)


def test_neighbours_in_one_storage_are_apart() -> None:
    base = torch.arange(8.0)
    left, right = round_trip(base[:4], base[4:])
    assert left.untyped_storage().data_ptr() != right.untyped_storage().data_ptr()


def test_conjugate_bit_is_resolved() -> None:
    round_trip(torch.randn(3, dtype=torch.complex64).conj(), torch.randn(3, dtype=torch.complex64).conj().imag)


@pytest.mark.parametrize(
    ("tensor", "problem"),
    [
        (torch.ones(2).to_sparse(), "'w' is sparse"),
        (torch.ones(2, device="meta"), "'w' is on the device 'meta'"),
        (torch.nn.UninitializedParameter(), "'w' is of type torch.nn.parameter.UninitializedParameter"),
    ],
)
def test_other_tensors_are_refused(tensor: torch.Tensor, problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        pack(["w"], [tensor])


def test_one_memory_of_two_dtypes_is_refused() -> None:
    t = torch.ones(4)
    with pytest.raises(StorageError, match="'a' and 'b' share memory but not their dtype"):
        pack(["a", "b"], [t, t.view(torch.int32)])


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"key": "nothing"}, "holds no tensor 'nothing'"),
        ({"shape": [5]}, "not \\[5\\] of torch.float32"),
        ({"dtype": "float64"}, "of F32, not torch.float64|which is not"),
        ({"device": "abacus"}, "'abacus' is no device"),
        ({"device": "cuda:77"}, "saved on device 'cuda:77'"),
        ({"stride": [2]}, "not the strides of a dense tensor"),
        ({"stride": [1], "offset": 3}, "outside the memory"),
        ({"offset": 0}, "needs its strides"),
        ({"dtype": "int32", "grad": True}, "has no gradient"),
    ],
)
def test_wrong_entry_is_refused(entry: dict[str, object], problem: str) -> None:
    stream = io.BytesIO()
    write_table(stream, {"a": torch.ones(4)})
    table = read_table(memoryview(bytearray(stream.getvalue())), "table")
    right = {"key": "a", "dtype": "float32", "shape": [4], "device": "cpu", "grad": False}
    assert unpack([Node([right], "t")], table, None)[0][0].eq(1).all()
    with pytest.raises(StorageError, match=problem):
        unpack([Node([{**right, **entry}], "t")], table, None)
