"""From kernels to calls: what is kept on disk, for whom, and how many blocks there are; no device is needed."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import torch

from runtime import torch_internals
from runtime.kernels import launch
from runtime.kernels.launch import Kernels, Launch, machine_code, shape
from runtime.kernels.text import Kernel, Kind
from runtime.native import cache
from runtime.torch_internals import CompileError


def test_machine_code_is_kept_by_what_it_is_made_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The text, what the device can do, and PyTorch's version."""
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kept"))
    asked: list[tuple[str, str]] = []

    def compile_cuda(source: str, architecture: str) -> bytes:
        asked.append((source, architecture))
        return f"{architecture}:{source}".encode()

    monkeypatch.setattr(torch_internals, "compile_cuda", compile_cuda)
    for _ in range(2):
        assert machine_code("one", "sm_80") == b"sm_80:one"
        assert machine_code("two", "sm_80") == b"sm_80:two"
        assert machine_code("one", "sm_90") == b"sm_90:one"
    assert asked == [("one", "sm_80"), ("two", "sm_80"), ("one", "sm_90")]
    monkeypatch.setattr(torch, "__version__", "another")
    machine_code("one", "sm_80")
    assert len(asked) == 4 and len(list((tmp_path / "kept").glob("*.cubin"))) == 4
    for path in (tmp_path / "kept").glob("*.cubin"):
        path.write_bytes(b"damaged")
    assert machine_code("two", "sm_90") == b"sm_90:two" and machine_code("one", "sm_80") == b"sm_80:one"


class _Machine:
    """Writes launches down."""

    kind = "cpu"

    def __init__(self, error: str = "") -> None:
        self.error = error
        self.loads: list[tuple[str, torch.device]] = []
        self.launches: list[tuple[int, int, bytes, int]] = []

    def is_there(self) -> bool:
        return True

    def takes(self, tensor: torch.Tensor) -> bool:
        return True

    def load(self, source: str, names: tuple[str, ...], device: torch.device) -> dict[str, Launch]:
        if self.error:
            raise CompileError(self.error)
        self.loads.append((source.split("\n")[0], device))
        return {name: lambda *given: self.launches.append(given) for name in names}


def test_kernels_are_loaded_once_for_each_device_and_type_of_index(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine()
    monkeypatch.setattr(launch, "machine", machine)
    kernels = Kernels((Kernel("k0", "text", "elements", ("p1", "n2", "f3"), "qqd"),))
    tensor = torch.ones(3)
    for device in (torch.device("cuda:0"), torch.device("cuda:1")):
        for count in (1000, 0, 1000, 1 << 31):
            kernels.launch(0, device, count, 1, tensor, 7, 0.5)
    narrow, whole = "#define INDEX unsigned", "#define INDEX long long"
    assert machine.loads == [(one, torch.device(f"cuda:{number}")) for number in (0, 1) for one in (narrow, whole)]
    words = struct.pack("<qqd", tensor.data_ptr(), 7, 0.5)
    assert machine.launches == [(4, 256, words, 0), (4, 256, words, 0), (launch.MOST_BLOCKS, 256, words, 0)] * 2


def test_what_cannot_be_compiled_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "machine", _Machine("no compiler"))
    kernels = Kernels((Kernel("k0", "text", "elements", (), ""),))
    with pytest.warns(RuntimeWarning, match="no compiler; the interpreter runs") as told:
        assert not kernels.prepare(torch.device("cpu")) and not kernels.prepare(torch.device("cpu"))
    assert len(told) == 1 and kernels.error == "no compiler"


@pytest.mark.parametrize("kind,count,width,expected", [
    ("elements", 1, 1, (1, 256)), ("elements", 257, 1, (2, 256)), ("elements", 1 << 40, 1, (1 << 16, 256)),
    ("rows", 5, 1, (5, 32)), ("rows", 5, 65, (5, 64)), ("rows", 1 << 20, 9000, (1 << 16, 512)),
    ("rows", 5000, 1000, (5000, 128)), ("rows", 500, 1000, (500, 256)), ("rows", 100, 1000, (100, 512)),
    ("sums", 5, 65, (5, 64)), ("sums", 5000, 1000, (launch.MOST_PARTS, 256)),
    ("sums", 1 << 20, 9000, (launch.MOST_PARTS, 512)),
    ("columns", 100, 33, (2, 1024)), ("columns", 1, 1, (1, 1024)),
])  # fmt: skip
def test_blocks_and_threads(kind: Kind, count: int, width: int, expected: tuple[int, int]) -> None:
    """Blocks are whole warps, no more than a launch may have."""
    assert shape(Kernel("k", "", kind, (), ""), count, width) == expected
