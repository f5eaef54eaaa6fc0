"""Small matrix products of the shared C file, compiled for vectors of every width that this processor has."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch

from runtime.native.build import compiler
from runtime.native.kernels import kernel_file

WIDTHS = {"avx2": ["-mavx2", "-mfma", "-mno-avx512f"], "avx512f": ["-mavx512f", "-mfma"]}
SIZES = [(1, 1, 1), (1, 64, 7), (1, 3, 1), (4, 16, 9), (3, 5, 7), (5, 33, 6), (2, 50, 13), (9, 7, 20), (7, 21, 1),
         (2, 300, 3)]  # fmt: skip


def flags() -> str:
    """What the first processor can do, as Linux tells it."""
    try:
        return Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0]
    except OSError:
        return ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_products(folder: Path, width: str, dtype: torch.dtype) -> None:
    """Each operand as it is and turned, added to what is there or not."""
    if f" {width} " not in f"{flags()} ":
        pytest.skip(f"this processor has no {width}")
    library = folder / f"{width}.so"
    if not library.exists():
        source = folder / f"{width}.c"
        source.write_text(kernel_file(False))
        command = compiler()
        if command is None:
            pytest.skip("there is no C compiler")
        subprocess.run([*command, "-std=gnu11", "-O2", "-w", "-fPIC", "-shared", *WIDTHS[width], "-o", str(library),
                        str(source)], check=True)  # fmt: skip
    letter, number = ("f", ctypes.c_float) if dtype is torch.float32 else ("d", ctypes.c_double)
    gemm = getattr(ctypes.CDLL(str(library)), f"gemm_{letter}")
    long, pointer = ctypes.c_int64, ctypes.POINTER(number)
    gemm.argtypes = [ctypes.c_int] * 2 + [long] * 3 + [pointer, long] * 3 + [ctypes.c_int]
    gemm.restype = None
    generator = torch.Generator().manual_seed(0)

    def address(tensor: torch.Tensor) -> ctypes._Pointer:
        return ctypes.cast(tensor.data_ptr(), pointer)

    for m, k, n in SIZES:
        for ta, tb, add in [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]:
            if tb and m > 2 and n * k > 4096:
                continue  # PyTorch's library computes it
            a = torch.randn((k, m) if ta else (m, k), generator=generator, dtype=dtype)
            b = torch.randn((n, k) if tb else (k, n), generator=generator, dtype=dtype)
            c = torch.randn(m, n, generator=generator, dtype=dtype)
            expected = (a.t() if ta else a) @ (b.t() if tb else b) + (c if add else 0)
            gemm(ta, tb, m, n, k, address(a), a.shape[1], address(b), b.shape[1], address(c), n, add)
            torch.testing.assert_close(c, expected, rtol=1e-5, atol=1e-5)
