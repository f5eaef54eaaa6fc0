"""Trains a small classifier and writes it as C: python examples/c_server/export.py build/spirals

A point of the plane belongs to one of three spirals. The classifier refines its state of a point until it is sure, so
that a point beside a spiral takes more steps than one on it. ``server.c`` answers requests with it, without Python.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from torch import Tensor, nn

import dy2static
from dy2static import InputSpec

SPECS = [InputSpec([None, 2], "float32", "x")]


class Spirals(nn.Module):
    """Points (rows, 2) to the likelihoods of three classes, and in how many steps."""

    def __init__(self, width: int = 32, patience: int = 12) -> None:
        super().__init__()
        self.patience = patience
        self.embed, self.think = nn.Linear(2, width), nn.Linear(width + 2, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        """Coordinates are from -1 to 1, or percent of that."""
        far = x.abs().max()
        if far > 100:
            raise ValueError("a coordinate is beyond 100")
        if far > 1:
            x = x / 100
        state = torch.sin(3 * self.embed(x))
        likely = self.head(state).softmax(-1)
        steps = 0
        while steps < self.patience:
            unsure = likely.amax(-1, keepdim=True) < 0.95
            if not unsure.any():
                break
            further = torch.tanh(self.think(torch.cat([state, x], -1)))
            state = torch.where(unsure, state + further, state)
            likely = self.head(state).softmax(-1)
            steps += 1
        return likely, steps


def points(count: int) -> tuple[Tensor, Tensor]:
    """Points near the spirals, and which spiral each is of."""
    label = torch.arange(count) % 3
    along = torch.rand(count)
    angle = 4 * along + label * (2 * math.pi / 3)
    near = torch.stack([angle.cos(), angle.sin()], 1) * (0.1 + 0.85 * along)[:, None]
    return (near + torch.randn(count, 2) * 0.02).clamp(-1, 1), label


def trained(steps: int = 300) -> Spirals:
    """A classifier that has learned."""
    torch.manual_seed(0)
    model = Spirals()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    x, label = points(600)
    for _ in range(steps):
        likely, _ = model(x)
        loss = nn.functional.nll_loss(likely.clamp(min=1e-6).log(), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained: {(likely.argmax(1) == label).float().mean().item():.1%} of the points are right")
    return model.eval()


def write(model: Spirals, folder: Path) -> None:
    """The C library as a folder, and beside it the model as a file for Python: spirals/ and spirals.d2s."""
    dy2static.export_c(model, folder, SPECS, name="spirals")
    dy2static.save(model, folder.with_suffix(".d2s"), SPECS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="what is written")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    write(trained(), asked.folder)
