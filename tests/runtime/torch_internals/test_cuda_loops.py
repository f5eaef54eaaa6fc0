"""Graphs with WHILE nodes, as far as they can be seen without a device."""

from __future__ import annotations

import ctypes
import types

import pytest
import torch

from runtime.torch_internals import CompileError, cuda_loops, nvrtc


def test_the_parameters_of_a_node_lie_as_the_driver_reads_them() -> None:
    """``CUgraphNodeParams`` in cuda.h: a type, 12 bytes, then those of the kind of node, 256 bytes in all."""
    layout = cuda_loops._Parameters
    assert ctypes.sizeof(layout) == 256
    offsets = [getattr(layout, name).offset for name in ("type", "handle", "kind", "size", "graphs", "context")]
    assert offsets == [0, 16, 24, 28, 32, 40]


def test_an_older_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "driver", types.SimpleNamespace)
    with pytest.raises(RuntimeError, match="the CUDA driver has no cuGraphAddNode_v2"):
        cuda_loops.record_cuda_loop(lambda: pytest.fail(""), lambda: pytest.fail(""), lambda: None, 0)


def test_what_is_copied_as_bytes() -> None:
    x = torch.ones(4, 3)
    assert cuda_loops._alike(x, x + 1) and cuda_loops._alike(x.t(), (x + 1).t()) and cuda_loops._alike(x[0, 0], x[1, 1])
    assert not cuda_loops._alike(x, x.t().contiguous().t()) and not cuda_loops._alike(x[:, :2], x[:, 1:])
    assert not cuda_loops._alike(x, x.double())


def test_the_kernel_compiles() -> None:
    try:
        code = nvrtc.compile_cuda(cuda_loops._SOURCE, "sm_90")
    except CompileError as error:
        if "NVRTC cannot be loaded" in str(error) or "builtins" in str(error):
            pytest.skip("no NVRTC")
        raise
    assert b"carry" in code
