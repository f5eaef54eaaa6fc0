"""Matrix products of the shared C file, compiled for vectors of every width that this processor has."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from runtime.native.build import compiler
from runtime.native.kernels import kernel_file
from runtime.native.prelude import BLAS, BOUND
from runtime.torch_internals import cpu_library

WIDTHS = {"avx2": ["-mavx2", "-mfma", "-mno-avx512f"], "avx512f": ["-mavx512f", "-mfma"]}
SIZES = [(1, 1, 1), (1, 64, 7), (1, 3, 1), (4, 16, 9), (3, 5, 7), (5, 33, 6), (2, 50, 13), (9, 7, 20), (7, 21, 1),
         (2, 300, 3), (6, 8, 8), (7, 9, 16), (12, 17, 17), (13, 31, 31), (24, 16, 32), (25, 40, 33), (6, 15, 64),
         (11, 512, 4), (26, 513, 70), (6, 1030, 5), (40, 70, 129)]  # fmt: skip


def flags() -> str:
    """What the first processor can do, as Linux tells it."""
    try:
        return Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0]
    except OSError:
        return ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def products(folder: Path, width: str, dtype: torch.dtype, *, threads: bool = False) -> Callable[..., None]:
    """The product: whether a and b are turned, m, n, k, a, b, c, whether it is added to c. ``threads``: they share
    every product, however small."""
    if f" {width} " not in f"{flags()} ":
        pytest.skip(f"this processor has no {width}")
    library = folder / f"{width}{threads}.so"
    if not library.exists():
        source = folder / f"{width}{threads}.c"
        source.write_text(kernel_file(False))
        command = compiler()
        if command is None:
            pytest.skip("there is no C compiler")
        subprocess.run([*command, "-std=gnu11", "-O2", "-w", "-fPIC", "-shared", *WIDTHS[width],
                        *(["-DALONE=1"] if threads else []), "-o", str(library), str(source)], check=True)  # fmt: skip
    letter, number = ("f", ctypes.c_float) if dtype is torch.float32 else ("d", ctypes.c_double)
    opened = ctypes.CDLL(str(library))
    if threads:
        opened.d2s_bind_kernels(_openmp())
    gemm = getattr(opened, f"gemm_{letter}")
    long, pointer = ctypes.c_int64, ctypes.POINTER(number)
    gemm.argtypes = [ctypes.c_int] * 2 + [long] * 3 + [pointer, long] * 3 + [ctypes.c_int]
    gemm.restype = None

    def call(ta: int, tb: int, m: int, n: int, k: int, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor,
             add: int) -> None:  # fmt: skip
        first, second, third = (ctypes.cast(one.data_ptr(), pointer) for one in (a, b, c))
        gemm(ta, tb, m, n, k, first, a.shape[1], second, b.shape[1], third, n, add)

    return call


def _openmp() -> ctypes.Array[ctypes.c_void_p]:
    """The addresses that the kernels are bound to, without BLAS."""
    library = cpu_library()
    functions = [None if name in BLAS else getattr(library, name, None) for name in BOUND]
    if None in functions[len(BLAS) :]:
        pytest.skip("this PyTorch has no OpenMP of GCC's")
    addresses = [None if one is None else ctypes.cast(one, ctypes.c_void_p) for one in functions]
    return (ctypes.c_void_p * len(addresses))(*(one and one.value for one in addresses))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_products(folder: Path, width: str, dtype: torch.dtype) -> None:
    """Each operand as it is and turned, added to what is there or not."""
    gemm = products(folder, width, dtype)
    generator = torch.Generator().manual_seed(0)
    for m, k, n in SIZES:
        for ta, tb, add in [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]:
            a = torch.randn((k, m) if ta else (m, k), generator=generator, dtype=dtype)
            b = torch.randn((n, k) if tb else (k, n), generator=generator, dtype=dtype)
            c = torch.randn(m, n, generator=generator, dtype=dtype)
            expected = (a.t() if ta else a) @ (b.t() if tb else b) + (c if add else 0)
            gemm(ta, tb, m, n, k, a, b, c, add)
            torch.testing.assert_close(c, expected, rtol=1e-5, atol=1e-4 if k > 100 else 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_how_a_product_is_cut_does_not_change_its_bits(folder: Path, width: str, dtype: torch.dtype) -> None:
    """Packed or not, turned or not, all rows at once or some, all columns or some."""
    gemm = products(folder, width, dtype)
    generator = torch.Generator().manual_seed(1)
    for m, k, n in [(40, 70, 96), (31, 600, 75), (26, 1030, 40)]:
        a = torch.randn(m, k, generator=generator, dtype=dtype)
        b = torch.randn(k, n, generator=generator, dtype=dtype)
        whole = torch.empty(m, n, dtype=dtype)
        gemm(0, 0, m, n, k, a, b, whole, 0)
        for rows in (6, 12, 24):
            for turned in (0, 1):
                part = torch.empty(rows, n, dtype=dtype)
                gemm(0, turned, rows, n, k, a[:rows], b.t().contiguous() if turned else b, part, 0)
                assert torch.equal(part, whole[:rows]), (m, k, n, rows, turned)
        some = torch.empty(m, 17, dtype=dtype)
        gemm(0, 0, m, 17, k, a, b[:, :17].contiguous(), some, 0)
        assert torch.equal(some, whole[:, :17])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_threads_do_not_change_bits(folder: Path, width: str, dtype: torch.dtype) -> None:
    """However many share a product."""
    alone, gemm = products(folder, width, dtype), products(folder, width, dtype, threads=True)
    generator = torch.Generator().manual_seed(0)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            for m, k, n in SIZES:
                for ta, tb, add in [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]:
                    a = torch.randn((k, m) if ta else (m, k), generator=generator, dtype=dtype)
                    b = torch.randn((n, k) if tb else (k, n), generator=generator, dtype=dtype)
                    c = torch.randn(m, n, generator=generator, dtype=dtype)
                    expected = c.clone()
                    alone(ta, tb, m, n, k, a, b, expected, add)
                    gemm(ta, tb, m, n, k, a, b, c, add)
                    assert torch.equal(c, expected), (threads, m, k, n, ta, tb, add)
    finally:
        torch.set_num_threads(before)
