"""What is generated compiles for GPUs: with nvcc, and with NVRTC where this PyTorch has it. Nothing runs there."""

from __future__ import annotations

import ctypes
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runtime import torch_internals
from runtime.kernels import cells, many, prelude
from runtime.kernels.handwritten import DTYPES
from runtime.kernels.text import Kernel
from runtime.torch_internals import CompileError, nvrtc
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import compiled

NVCC = shutil.which("nvcc")
ARCHITECTURES = ["sm_80", pytest.param("sm_90", marks=pytest.mark.slow)]

_PROGRAM = """program "f" {
  input %x : KIND[a, b] = "x"
  input %y : KIND[b] = "y"
  input %k : float = "k"
  %u : KIND[a, b] = aten.mul.Tensor(%x, %y)
  %v : KIND[a, b] = aten.add.Tensor(%u, %k)
  %g : KIND[a, b] = aten.gelu.default(%v)
  %t : KIND[a, b] = aten.silu_backward.default(%g, %v)
  %q : KIND[a, b] = aten.remainder.Scalar(%t, 0.75)
  %s : KIND[a, b] = aten._softmax.default(%t, -1, False)
  %n : KIND[a, b], %m : FACT[a, 1], %r : FACT[a, 1] = aten.native_layer_norm.default(%s, [8], %y, None, 1e-05)
  %d : KIND[a, b], %e : KIND[b], %f : KIND[b] = aten.native_layer_norm_backward.default(%n, %s, [8], %m, %r, %y, %y, [True, True, True])
  %z : KIND[a, b] = aten.tanh.default(%d)
  %o : KIND[a] = aten.sum.dim_IntList(%z, [1])
  %w : bool[a, b] = aten.isnan.default(%z)
  return %z, %e, %f, %w, %q as ($0, $1, $2, $3, $4)
}"""  # noqa: E501


def sources() -> dict[str, str]:
    """A file for each kind of float, and one for whole numbers."""
    found = {}
    for kind in ("f32", "f64", "bf16", "f16"):
        text = _PROGRAM.replace("KIND", kind).replace("FACT", "f32" if "16" in kind else kind)
        if "16" in kind:
            text = "\n".join(line for line in text.split("\n") if " %q :" not in line and " %o :" not in line)
            text = text.replace(", %q as ($0, $1, $2, $3, $4)", " as ($0, $1, $2, $3)")
        else:
            text = text.replace("%q as ($0, $1, $2, $3, $4)", "%q, %o as ($0, $1, $2, $3, $4, $5)")
        found[kind] = compiled(text).cuda_source()
    found["whole"] = compiled("""program "f" {
      input %x : i64[a, b] = "x"
      input %y : i32[a, b] = "y"
      input %z : bool[a, b] = "z"
      %u : i64[a, b] = aten.mul.Tensor(%x, %y)
      %v : i64[a, b] = aten.where.self(%z, %u, %x)
      %w : i64[a, b] = aten.floor_divide.Scalar(%v, 7)
      %r : i64[a] = aten.sum.dim_IntList(%w, [1])
      %q : f32[a, b] = aten.to.dtype(%w, torch.float32)
      %s : bf16[a, b] = aten.to.dtype(%q, torch.bfloat16)
      return %r, %s as ($0, $1)
    }""").cuda_source()
    return found


def by_hand() -> list[str]:
    """The files of kernels written by hand, one for each dtype."""
    found = []
    for kernels, dtype in itertools.product((cells._LSTM, cells._GRU, many._SGD, many._ADAM, many._CLIP), DTYPES):
        found.append(kernels.of(dtype).text())
    return found


def together(texts: dict[str, str]) -> str:
    """One file of the kernels of many Programs."""
    numbers = itertools.count()
    return re.sub(r"void k\d+\(", lambda _: f"void kernel{next(numbers)}(", "\n".join(texts.values()))


def test_kernels_are_made_of_each_kind(host: Host) -> None:
    """Each file has kernels that go over rows; those of floats sum down columns, too."""
    for kind, text in sources().items():
        assert text.count("__global__") >= (2 if kind != "whole" else 1), (kind, text)
        assert "block_join" in text and "gridDim" in text
        assert kind == "whole" or "parts0[32]" in text


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("narrow", [True, False])
def test_nvcc(host: Host, architecture: str, narrow: bool, tmp_path: Path) -> None:
    """All kernels in one file, with those written by hand; both types that elements are counted in."""
    path = tmp_path / "all.cu"
    numbers = itertools.count()
    texts = [together(sources())]
    for text in by_hand() if narrow else []:  # each has its own words for its dtype
        number = next(numbers)
        words = re.findall(r"#define (\w+)", text)
        text = re.sub(r"\b(T|R)\b", rf"\g<1>{number}", re.sub(r"void (\w+)\(", rf"void \g<1>{number}(", text))
        texts.append("\n".join([text, *(f"#undef {word}" for word in words)]))
    path.write_text(prelude.source("\n".join(texts), narrow=narrow))
    done = subprocess.run([str(NVCC), "-ptx", f"-arch={architecture}", "-fmad=false", "-w", "-o", str(tmp_path / "all"),
                           str(path)], capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "all").read_text()
    assert made.count(".visible .entry") == path.read_text().count("__global__")
    assert "fma.rn.f32" in made  # of functions such as expf
    assert ".f16" in made


def test_nvrtc(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the compiler that runs in the process, PyTorch's or the one of the package nvidia-cuda-nvrtc."""
    for folder in [one for place in sys.path for one in Path(place).glob("nvidia/cu*/lib")]:
        for name in ("libnvrtc-builtins.so.*", "libnvrtc.so.*"):  # the second looks for the first by name
            for path in folder.glob(name):
                library = ctypes.CDLL(str(path))
        monkeypatch.setattr(nvrtc, "_compiler", lambda: library)
    try:
        code = torch_internals.compile_cuda(prelude.source(together(sources()), narrow=True), "sm_80")
        for text in by_hand():
            torch_internals.compile_cuda(prelude.source(text, narrow=True), "sm_90")
    except CompileError as error:
        if "cannot be loaded" in str(error):
            pytest.skip("this PyTorch has no NVRTC")
        raise
    assert code[:4] == b"\x7fELF"


def test_a_kernel_that_cannot_be_compiled_is_told_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """One notice; the interpreter answers, then and later."""
    text = """program "f" {
      input %x : f32[a] = "x"
      %y : f32[a] = aten.exp.default(%x)
      %z : f32[a] = aten.mul.Tensor(%y, %x)
      return %z as $0
    }"""
    made = compiled(text)
    (region,) = made.written.compiled
    region.kernels.kernels = [Kernel("k0", "nonsense", "elements", (), "")]
    x = torch.randn(5)
    with pytest.warns(RuntimeWarning, match="the interpreter runs what was to be a kernel") as told:
        for _ in range(3):
            assert torch.equal(made.run([x], [])[0], x.exp() * x)
    assert len(told) == 1 and not host.launches
