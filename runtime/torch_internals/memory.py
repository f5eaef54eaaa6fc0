"""Tensors as plain memory: whether one is nothing more, and the library that PyTorch computes with."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch

from runtime.torch_internals.modes import others_trace


@functools.cache
def _plain_keys(device: str = "cpu") -> frozenset[int]:
    """The dispatch keys of tensors that are nothing but memory of a kind of device, as numbers."""
    with torch.inference_mode():
        inference = torch.empty(1, device=device)
    with torch.no_grad():
        return frozenset(torch._C._dispatch_keys(one).raw_repr() for one in (torch.empty(1, device=device), inference))


def is_plain_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor is dense or strided memory of the CPU and nothing else: no negation that waits, no wrapper.

    >>> is_plain_memory(torch.ones(2)), is_plain_memory(torch.ones(2, dtype=torch.complex64).conj())
    (True, False)
    """
    return torch._C._dispatch_keys(tensor).raw_repr() in _plain_keys()


def is_plain_cuda_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor is dense or strided memory of a CUDA device and nothing else."""
    return tensor.is_cuda and torch._C._dispatch_keys(tensor).raw_repr() in _plain_keys("cuda")


def nothing_watches() -> bool:
    """Whether operators would run as they are: no dispatch or function mode, no transform of ``torch.func``, no
    autocast, no forward mode, no jit.trace."""
    if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
        return False
    return not torch._C._is_any_autocast_enabled() and not others_trace()


def is_profiled() -> bool:
    """Whether a profiler records what this thread does."""
    return torch._C._autograd._profiler_enabled()


def cpu_library() -> ctypes.CDLL | None:
    """The library of PyTorch's kernels for the CPU, which the process has loaded already; None if it is not found."""
    folder = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        if (folder / name).exists():
            try:
                return ctypes.CDLL(str(folder / name))
            except OSError:
                return None
    return None
