"""Distillation: a small model learns from what a large one says, besides what is right.

    loss = alpha * T^2 * KL(teacher / T, student / T) + (1 - alpha) * task loss

The probabilities of both are softened by the temperature T (Hinton, Vinyals and Dean, 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Loss = Callable[[Tensor, Any], Tensor]


def softened_loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """How far the student's probabilities are from the teacher's, both softened; over the last dimension.

    >>> same = torch.tensor([[1.0, 2.0]])
    >>> softened_loss(same, same, 2.0).item()
    0.0
    """
    rows = student.flatten(0, -2) if student.dim() > 1 else student.unsqueeze(0)
    wanted = F.log_softmax(teacher.detach().reshape(rows.shape) / temperature, -1)
    found = F.log_softmax(rows / temperature, -1)
    return F.kl_div(found, wanted, reduction="batchmean", log_target=True) * temperature**2


def distil_into(
    student: torch.nn.Module, teacher: torch.nn.Module, batches: Iterable[tuple[Any, Any]], temperature: float,
    alpha: float, optimizer: torch.optim.Optimizer, loss: Loss,
) -> list[float]:  # fmt: skip
    """Train a student, a step for each batch; what the loss was at each step.

    Errors raised: ValueError without batches, or for results that are not of the same sizes.
    """
    mode = teacher.training
    teacher.eval()
    student.train()
    losses = []
    try:
        for inputs, targets in batches:
            given = inputs if type(inputs) is tuple else (inputs,)
            with torch.no_grad():
                wanted = teacher(*given)
            found = student(*given)
            if not isinstance(found, Tensor) or not isinstance(wanted, Tensor) or found.shape != wanted.shape:
                raise ValueError(f"student and teacher must give tensors of the same sizes, not {_said(found)} and "
                                 f"{_said(wanted)}")  # fmt: skip
            total = (1 - alpha) * loss(found, targets)
            if alpha:
                total = total + alpha * softened_loss(found, wanted, temperature)
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            losses.append(total.item())
    finally:
        teacher.train(mode)
    if not losses:
        raise ValueError("distillation needs at least one batch")
    return losses


def _said(value: Any) -> str:
    return str(list(value.shape)) if isinstance(value, Tensor) else type(value).__name__


__all__ = ["distil_into", "softened_loss"]
