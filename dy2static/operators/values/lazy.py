"""Modules such as ``nn.LazyLinear``, which get their parameters when they are called for the first time."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from dy2static.operators.shared.staging import Session
from runtime import torch_internals
from runtime.ir.definition import definition_of
from runtime.kinds import is_a


def initialize(session: Session, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make a module's parameters now, as its first call in eager does: they are the caller's from then on.

    Raises:
        TraceError: D2S219, the sizes are not known, or eager does it on some paths only or after random numbers.
    """
    if not is_a(module, LazyModuleMixin) or not module.has_uninitialized_params():
        return
    drawn = any(definition_of(op.name).random for op in session.program.block.walk())
    if session.scope is not session.root() or drawn or not all(map(_is_known, (*args, *kwargs.values()))):
        raise session.error(
            f"{type(module).__name__} has no parameters yet, and a Program cannot make them here",
            hint="Call the module once before it is converted.", code="D2S219")
    with torch_internals.no_modes(), torch.no_grad():
        keywords = {name: _real(value) for name, value in kwargs.items()}
        module._infer_parameters(module, tuple(map(_real, args)), keywords)


def _is_known(value: Any) -> bool:
    return not is_a(value, torch.Tensor) or all(type(size) is int for size in value.shape)


def _real(value: Any) -> Any:
    if not is_a(value, torch.Tensor):
        return value
    return torch.zeros(tuple(value.shape), dtype=value.dtype, device=value.device)


__all__ = ["initialize"]
