"""The modes and settings of PyTorch around the call that is traced, and which of them the function asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
    unknown_autocast: int | None = state(VALUE, None)
    """How deep in autocast regions the trace is of something that runs later, under a state that nobody knows yet."""
    cache: bool = state(VALUE)
    """Whether autocast keeps cast weights outside; a trace lets it keep none."""
    settings: Any = state(VALUE)
    answers: dict[str, Any] = state(VALUE)
    """What functions that ask for a setting answer where the trace begins, by name."""
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
        self.settings = torch_internals.settled_settings()
        self.answers = {name: function() for name, function in torch_internals.setting_functions().items()}
        self.hooks = torch_internals.saved_tensor_hooks()

    @contextlib.contextmanager
    def of_forward(self) -> Iterator[None]:
        """What the ``forward`` of a ``torch.autograd.Function`` finds outside: no gradients."""
        before, self.grad = self.grad, False
        try:
            with torch.no_grad():
                yield
        finally:
            self.grad = before

    @contextlib.contextmanager
    def of_backward(self) -> Iterator[None]:
        """What ``backward`` finds outside when it runs, later: its own autocast state, mostly none."""
        before = self.autocast, self.unknown_autocast
        self.autocast = tuple((device, False, dtype) for device, _, dtype in self.autocast)
        try:
            with torch_internals.autocast_as(self.autocast):
                self.unknown_autocast = torch_internals.autocast_depth()
                yield
        finally:
            self.autocast, self.unknown_autocast = before

    def is_own(self, autocast: Any) -> bool:
        """Whether an autocast state is what is in force outside, and no ``torch.autocast`` inside says so."""
        if self.unknown_autocast is not None and torch_internals.autocast_depth() > self.unknown_autocast:
            return False
        return bool(autocast == self.autocast)


__all__ = ["Outside"]
