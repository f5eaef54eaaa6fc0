"""Models that the tests of serving save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

import dy2static
from dy2static import InputSpec

ROWS = [InputSpec([None, 8], "float32", "x")]


class Classifier(nn.Module):
    """Each row by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.BatchNorm1d(16), nn.Dropout(0.5))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        scores = self.head(self.body(x))
        return {"scores": scores, "best": scores.argmax(-1)}


class Settling(nn.Module):
    """A loop whose end the values decide."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(8, 8)

    def forward(self, x):
        steps = 0
        while x.abs().max() > 1:
            x = self.step(x).tanh() * 0.9 + 0.4 * x
            steps += 1
            if steps > 2 and x.sum() > 1e6:
                raise ValueError("it does not settle")
        return x, steps


class Attention(nn.Module):
    """A transformer's layer, written by hand, with a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.place = nn.Parameter(torch.randn(32, 8))
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, ids):
        b, t = ids.shape
        x = self.embed(ids) + self.place[:t]
        x = torch.cat([self.token.expand(b, -1, -1), x], dim=1)
        q, k, v = self.qkv(self.norm(x)).reshape(b, t + 1, 3, 2, 4).permute(0, 2, 3, 1, 4).unbind(1)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t + 1, 8) + x)[:, 0]


def saved(function: Any, folder: Path, specs: Any) -> Path:
    """The file of a saved model."""
    torch.manual_seed(0)
    made = function() if isinstance(function, type) else function
    return dy2static.save(made, folder / "model", specs)
