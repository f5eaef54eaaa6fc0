"""Clipping of gradients: in static optimizers (``grad_clip=``), and attached to any optimizer of torch.

    clip = ClipGradByGlobalNorm(1.0)
    optimizer.SGD(0.1, grad_clip=clip).minimize(loss)          a static-graph optimizer
    handle = clip.attach(torch_optimizer)                      before each step() of an optimizer of torch's
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch


class Clip:
    """``no_clip``: parameters, or their names in the Program, whose gradients stay as they are."""

    def __init__(self, no_clip: Collection[torch.Tensor | str] = ()) -> None:
        self._names = frozenset(one for one in no_clip if isinstance(one, str))
        self._tensors = [one for one in no_clip if isinstance(one, torch.Tensor)]

    def clipped(self, grads: Sequence[torch.Tensor], names: Sequence[str], parameters: Sequence[Any] = ()) -> list[Any]:
        """The gradients as they are to be used, new tensors; ``names`` and ``parameters``: whose they are."""
        chosen = [number for number, name in enumerate(names) if name not in self._names and not (
            parameters and any(parameters[number] is one for one in self._tensors))]
        new = iter(self._clip([grads[number] for number in chosen]) if chosen else ())
        return [next(new) if number in chosen else grad for number, grad in enumerate(grads)]

    def attach(self, optimizer: torch.optim.Optimizer) -> Any:
        """Clip before each step of an optimizer of torch's; ``remove()`` of what is given ends it."""

        def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            held = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
            with torch.no_grad():
                for one, grad in zip(held, self.clipped([p.grad for p in held], [""] * len(held), held)):
                    if grad is not one.grad:
                        one.grad.copy_(grad)

        return optimizer.register_step_pre_hook(before)

    def _clip(self, grads: list[torch.Tensor]) -> list[torch.Tensor]:
        raise NotImplementedError


class ClipGradByValue(Clip):
    """Each element lies between ``min`` and ``max`` (by default ``-max``)."""

    def __init__(self, max: float, min: float | None = None, no_clip: Collection[torch.Tensor | str] = ()) -> None:
        super().__init__(no_clip)
        self.max, self.min = float(max), -float(max) if min is None else float(min)

    def _clip(self, grads: list[torch.Tensor]) -> list[torch.Tensor]:
        return [grad.clamp(self.min, self.max) for grad in grads]


class ClipGradByNorm(Clip):
    """Each gradient's 2-norm is at most ``clip_norm``: ``g * clip_norm / max(norm, clip_norm)``."""

    def __init__(self, clip_norm: float, no_clip: Collection[torch.Tensor | str] = ()) -> None:
        super().__init__(no_clip)
        self.clip_norm = float(clip_norm)

    def _clip(self, grads: list[torch.Tensor]) -> list[torch.Tensor]:
        return [grad * self._scale(torch.linalg.vector_norm(grad)) for grad in grads]

    def _scale(self, norm: torch.Tensor) -> torch.Tensor:
        return self.clip_norm / norm.clamp(min=self.clip_norm)


class ClipGradByGlobalNorm(ClipGradByNorm):
    """The 2-norm of all gradients together is at most ``clip_norm``; all are scaled alike."""

    def _clip(self, grads: list[torch.Tensor]) -> list[torch.Tensor]:
        norms = [torch.linalg.vector_norm(grad.to(torch.float32)) for grad in grads]
        scale = self._scale(torch.linalg.vector_norm(torch.stack(norms)))
        return [grad * scale.to(grad.dtype) for grad in grads]


__all__ = ["Clip", "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]
