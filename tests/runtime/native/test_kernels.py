"""Matrix products of the shared C file, compiled for vectors of every width that this processor has."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

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


Gemm = Callable[..., None]
"""A product: whether a and b are turned, m, n, k, a, b, c, and whether it is added to c, or what sums begin with."""


def opened(folder: Path, width: str, *, threads: bool) -> ctypes.CDLL:
    """The kernels for vectors of some width. ``threads``: they share every product, however small."""
    if f" {width} " not in f"{flags()} ":
        pytest.skip(f"this processor has no {width}")
    path = folder / f"{width}{threads}.so"
    if not path.exists():
        source = folder / f"{width}{threads}.c"
        source.write_text(kernel_file(False))
        command = compiler()
        if command is None:
            pytest.skip("there is no C compiler")
        subprocess.run([*command, "-std=gnu11", "-O2", "-w", "-fPIC", "-shared", *WIDTHS[width],
                        *(["-DALONE=1"] if threads else []), "-o", str(path), str(source)], check=True)  # fmt: skip
    library = ctypes.CDLL(str(path))
    if threads:
        library.d2s_bind_kernels(_openmp())
    return library


def _letter(dtype: torch.dtype) -> str:
    return "f" if dtype is torch.float32 else "d"


def _address(t: torch.Tensor | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if t is None else t.data_ptr())


def _starting(c: torch.Tensor, add: int | torch.Tensor) -> tuple[ctypes.c_void_p, int]:
    start = add if isinstance(add, torch.Tensor) else c if add else None
    return _address(start), 0 if start is None or start.dim() == 1 else start.stride(0)


def products(folder: Path, width: str, dtype: torch.dtype, *, threads: bool = False) -> Gemm:
    """The product of two matrices."""
    gemm = getattr(opened(folder, width, threads=threads), f"gemm_{_letter(dtype)}")
    long, pointer = ctypes.c_int64, ctypes.c_void_p
    gemm.argtypes = [ctypes.c_int] * 2 + [long] * 3 + [pointer, long] * 4
    gemm.restype = None

    def call(ta: int, tb: int, m: int, n: int, k: int, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor,
             add: int | torch.Tensor) -> None:  # fmt: skip
        gemm(ta, tb, m, n, k, _address(a), a.stride(0), _address(b), b.stride(0), _address(c), c.stride(0),
             *_starting(c, add))  # fmt: skip

    return call


def packing(folder: Path, width: str, dtype: torch.dtype, *, threads: bool = False) -> Gemm:
    """The same with the second matrix packed before, as one that a loop reads is."""
    library, letter = opened(folder, width, threads=threads), _letter(dtype)
    count, pack, gemm = (getattr(library, f"{name}_{letter}") for name in ("d2s_panels", "d2s_pack", "gemm_packed"))
    long, pointer = ctypes.c_int64, ctypes.c_void_p
    count.argtypes, count.restype = [long] * 2, long
    pack.argtypes, pack.restype = [ctypes.c_int, long, long, pointer, long, pointer], None
    gemm.argtypes = [ctypes.c_int] + [long] * 3 + [pointer, long, pointer] + [pointer, long] * 2
    gemm.restype = None

    def call(ta: int, tb: int, m: int, n: int, k: int, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor,
             add: int | torch.Tensor) -> None:  # fmt: skip
        panels = torch.full((count(n, k) + 1,), float("nan"), dtype=dtype)
        pack(tb, n, k, _address(b), b.stride(0), _address(panels))
        assert panels[-1].isnan()
        gemm(ta, m, n, k, _address(a), a.stride(0), _address(panels), _address(c), c.stride(0), *_starting(c, add))

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


SPECIAL = (0, 1, 2, 3, 4, 5, 7, 8, 12, 13, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100, 129)


def generated(random: Random) -> tuple[int, int, int]:
    """Sizes at and around those of vectors and tiles, now and then a long one."""
    sizes = [random.choice(SPECIAL) if random.random() < 0.6 else random.randrange(0, 90) for _ in range(3)]
    if random.random() < 0.15:
        sizes[random.randrange(3)] = random.randrange(500, 1700)
    return sizes[0], sizes[1], sizes[2]


def scattered(random: Random, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """A matrix whose rows lie apart in memory, the last at its very end."""
    apart = columns + random.choice((0, 0, 1, 3, 16))
    memory = torch.randn(max((rows - 1) * apart + columns, 0), dtype=dtype)
    return memory.as_strided((rows, columns), (max(apart, 1), 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("threads", [False, True])
def test_generated_sizes(folder: Path, width: str, dtype: torch.dtype, threads: bool) -> None:
    """Any sizes, none among them; rows that lie apart; sums that begin with nothing, with what is there, with a row
    for all rows, or with a matrix. Nothing between the rows of the result is written."""
    gemm, packed = products(folder, width, dtype, threads=threads), packing(folder, width, dtype, threads=threads)
    random = Random(f"{width}{dtype}")
    torch.manual_seed(3)
    for _ in range(400):
        m, n, k = generated(random)
        ta, tb = random.randrange(2), random.randrange(2)
        a = scattered(random, *((k, m) if ta else (m, k)), dtype)
        b = scattered(random, *((n, k) if tb else (k, n)), dtype)
        c = scattered(random, m, n, dtype)
        start = random.choice((0, 1, torch.randn(n, dtype=dtype), scattered(random, m, n, dtype)))
        first = c.clone() if isinstance(start, int) and start else start
        whole = c.as_strided((c.untyped_storage().nbytes() // c.element_size(),), (1,))
        before = whole.clone()
        inside = torch.zeros_like(whole, dtype=torch.bool)
        inside.as_strided(c.shape, c.stride()).fill_(True)
        exact = (a.t() if ta else a).double() @ (b.t() if tb else b).double()
        expected = (exact + (first.double() if isinstance(first, torch.Tensor) else 0)).to(dtype)
        what = (m, n, k, ta, tb, type(start), a.stride(), b.stride(), c.stride())
        for run in (gemm, packed):
            whole.copy_(before)
            run(ta, tb, m, n, k, a, b, c, start)
            torch.testing.assert_close(c, expected, rtol=1e-5, atol=2e-5 * max(k, 1) ** 0.5, msg=lambda _: str(what))
            assert torch.equal(whole[~inside], before[~inside]), what


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
