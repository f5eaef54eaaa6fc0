"""The modes and settings of PyTorch around the call that is traced, and which of them the function asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from runtime import torch_internals
from runtime.tracer.ambient.session_parts import KEPT, VALUE, SessionPart, state


@dataclass(eq=False)
class Outside(SessionPart):
    """What is in force outside. Made where a trace begins, for it reads that from PyTorch."""

    grad: bool = state(VALUE)
    autocast: Any = state(VALUE)
    cache: bool = state(VALUE)
    """Whether autocast keeps cast weights outside; a trace lets it keep none."""
    settings: Any = state(VALUE)
    hooks: Any = state(VALUE)
    """Those for saved tensors."""
    asks_gradients: bool = state(KEPT, False)  # a failed try asked, too
    """Whether the function asked if gradients are enabled."""
    asked_settings: set[str] = state(KEPT, set)  # nor is this taken back
    """Settings of PyTorch that the function asked for, or what depends on them, by name."""

    def __post_init__(self) -> None:
        self.grad = torch.is_grad_enabled()
        self.autocast = torch_internals.autocast_state()
        self.cache = torch.is_autocast_cache_enabled()
        self.settings = torch_internals.settings()
        self.hooks = torch_internals.saved_tensor_hooks()


__all__ = ["Outside"]
