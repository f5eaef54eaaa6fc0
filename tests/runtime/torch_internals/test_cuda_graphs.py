"""Recordings that fail, with words of CUDA's that do as PyTorch's do (there need be no device)."""

from __future__ import annotations

import contextlib
import types
from typing import Any

import pytest
import torch

from runtime.torch_internals import cuda_graphs


class Graph:
    """A CUDA graph; ``broken``: what was recorded waits for the device."""

    broken = False

    def capture_begin(self, pool: Any, capture_error_mode: str) -> None:
        """Begin."""

    def capture_end(self) -> None:
        """End, which PyTorch's allocator is told only if CUDA says that all is well."""
        if self.broken:
            raise RuntimeError("operation failed due to a previous error during capture")


@pytest.mark.parametrize("broken", [False, True])
def test_the_allocator_is_told_of_an_end_that_fails(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    lasting: list[Any] = []
    monkeypatch.setattr(Graph, "broken", broken)
    monkeypatch.setattr(cuda_graphs, "_lasting", lasting)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", lambda *given: told.append(given), raising=False)

    def function() -> tuple[Any, ...]:
        raise ValueError("wrong")

    with pytest.raises(RuntimeError if broken else ValueError):
        cuda_graphs._recorded(function, (), types.SimpleNamespace(device_index=1), (0, 5))
    assert told == ([(1, (0, 5))] if broken else []) and len(lasting) == int(broken)
