"""Settings of PyTorch, as traces read them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime import torch_internals

settings = importlib.import_module("runtime.torch_internals.settings")  # a function has its name, too


def test_the_first_attention_comes_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a device is in use; once in a process. There it may change the order of PyTorch's kernels."""
    asked: list[str] = []
    monkeypatch.setattr(settings, "settings", lambda: ["read"])
    monkeypatch.setattr(torch, "_fused_sdp_choice", lambda *given: asked.append(given[0].device))
    monkeypatch.setattr(torch, "zeros", lambda *size, dtype, device: torch.empty(size, dtype=dtype, device="meta"))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    settings._first_attention.cache_clear()
    for there in (False, True, True):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: there)
        assert settings.settled_settings() == ["read"]
    assert len(asked) == 1
    settings._first_attention.cache_clear()


@pytest.mark.parametrize("change", [
    lambda: torch.use_deterministic_algorithms(True),
    lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    lambda: torch.set_float32_matmul_precision("high"),
    lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
    lambda: setattr(torch.backends.cudnn, "allow_tf32", False),
    lambda: setattr(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False),
    lambda: setattr(torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False),
    lambda: setattr(torch.backends.cudnn, "deterministic", True),
    lambda: setattr(torch.backends.cudnn, "benchmark", True),
    lambda: setattr(torch.backends.cudnn, "enabled", False),
    lambda: torch.backends.cuda.enable_flash_sdp(False),
    lambda: torch.backends.cuda.enable_mem_efficient_sdp(False),
    lambda: torch.backends.cuda.enable_math_sdp(False),
    lambda: torch.backends.cuda.enable_cudnn_sdp(False),
])  # fmt: skip
def test_what_chooses_kernels_of_cuda(change: Callable[[], Any]) -> None:
    before, all_before = torch_internals.cuda_settings(), torch_internals.settings()
    try:
        change()
        assert torch_internals.cuda_settings() != before
        assert hash(torch_internals.cuda_settings())
    finally:
        torch.use_deterministic_algorithms(False)
        torch_internals.put_back_settings(all_before)
    assert torch_internals.cuda_settings() == before


def _chosen() -> list[str]:
    return [torch._C._get_fp32_precision_getter("cuda", one) for one in ("matmul", "conv")]


@pytest.mark.skipif(not hasattr(torch._C, "_get_fp32_precision_getter"), reason="of newer versions of PyTorch")
@pytest.mark.parametrize("backend, of", [("generic", "all"), ("cuda", "all"), ("cuda", "matmul"), ("cuda", "conv")])
def test_what_newer_settings_choose(backend: str, of: str) -> None:
    """What follows for products and convolutions: nothing where an earlier test has set these themselves."""
    before, all_before, chosen = torch_internals.cuda_settings(), torch_internals.settings(), _chosen()
    try:
        torch._C._set_fp32_precision_setter(backend, of, "ieee" if of == "conv" else "tf32")
        assert (torch_internals.cuda_settings() != before) == (_chosen() != chosen)
    finally:
        torch_internals.put_back_settings(all_before)
