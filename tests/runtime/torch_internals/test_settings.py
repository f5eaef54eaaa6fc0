"""Settings of PyTorch, as traces read them."""

from __future__ import annotations

import importlib

import pytest
import torch

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
