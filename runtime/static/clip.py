"""Clipping of gradients: in static optimizers (``grad_clip=``), and attached to any optimizer of torch.

    clip = ClipGradByGlobalNorm(1.0)
    optimizer.SGD(0.1, grad_clip=clip).minimize(loss)          a static-graph optimizer
    handle = clip.attach(torch_optimizer)                      before each step() of an optimizer of torch's
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from runtime.errors import ProgramError


class Clip:
    """``no_clip``: parameters, or their names in the Program, whose gradients stay as they are."""

    def __init__(self, no_clip: Collection[torch.Tensor | str] = ()) -> None:
        given = [no_clip] if isinstance(no_clip, (str, torch.Tensor)) else list(no_clip)
        for one in given:
            if not isinstance(one, (str, torch.Tensor)):
                raise ProgramError(f"no_clip has a {type(one).__name__}", hint="Give parameters, or their names.")
        self.no_clip: list[torch.Tensor | str] = given

    def clipped(self, grads: Sequence[torch.Tensor], left: Collection[int] = ()) -> list[Any]:
        """The gradients as they are to be used, new tensors; those of the numbers ``left`` stay as they are."""
        chosen = [number for number in range(len(grads)) if number not in left]
        new = iter(self._clip([grads[number] for number in chosen]) if chosen else ())
        return [next(new) if number in chosen else grad for number, grad in enumerate(grads)]

    def attach(self, optimizer: torch.optim.Optimizer) -> Any:
        """Clip before each step of an optimizer of torch's; ``remove()`` of what is given ends it.

        Raises:
            ProgramError: ``no_clip`` names a parameter, or has a tensor that is none of the optimizer's.
        """
        every = [one for group in optimizer.param_groups for one in group["params"]]
        for one in self.no_clip:
            if isinstance(one, str):
                raise ProgramError(f"no_clip names {one!r}, and an optimizer of torch's knows no names",
                                   hint="Give the parameter itself.")
            if all(one is not other for other in every):
                raise ProgramError("no_clip has a tensor that is no parameter of the optimizer")

        def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            held = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
            left = {number for number, one in enumerate(held) if any(one is other for other in self.no_clip)}
            with torch.no_grad():
                for one, grad in zip(held, self.clipped([p.grad for p in held], left)):
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
