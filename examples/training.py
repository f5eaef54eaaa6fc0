"""An ordinary training loop: it knows nothing of static Programs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from digits_data import Digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@dataclass
class Curve:
    """What a training run measured, one entry an epoch."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    seconds: float = 0.0


def train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, labels: Tensor, batch_size: int
) -> tuple[float, float]:
    """One pass over the images in random order: the mean loss, and the mean number of refinements a batch."""
    model.train()
    total_loss, total_steps = 0.0, 0
    batches = torch.randperm(len(images)).split(batch_size)
    for batch in batches:
        logits, steps = model(images[batch])
        loss = cross_entropy(logits, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(batch)
        total_steps += steps
    return total_loss / len(images), total_steps / len(batches)


@torch.no_grad()
def evaluate(model: nn.Module, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """The mean loss and the share of right answers, in eval mode."""
    model.eval()
    logits, _ = model(images)
    accuracy = (logits.argmax(-1) == labels).float().mean()
    return cross_entropy(logits, labels).item(), accuracy.item()


def fit(
    model: nn.Module,
    data: Digits,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    after_epoch: Callable[[Curve], None],
) -> Curve:
    """Train with Adam and a cosine schedule; ``after_epoch`` is told the curve so far."""
    curve = Curve()
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    start = time.perf_counter()
    for _ in range(epochs):
        loss, steps = train_epoch(model, optimizer, data.train_images, data.train_labels, batch_size)
        schedule.step()
        _, accuracy = evaluate(model, data.test_images, data.test_labels)
        curve.loss.append(loss)
        curve.steps.append(steps)
        curve.accuracy.append(accuracy)
        curve.seconds = time.perf_counter() - start
        after_epoch(curve)
    return curve
