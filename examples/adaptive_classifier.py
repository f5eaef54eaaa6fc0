"""A classifier that thinks only as long as it has to: plain Python control flow that depends on tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dy2static import to_static


class AdaptiveClassifier(nn.Module):
    """Refines its state until every image of the batch is classified with confidence, or patience runs out."""

    def __init__(self, pixels: int = 64, classes: int = 10, hidden: int = 256, patience: int = 8) -> None:
        super().__init__()
        self.patience = patience
        self.confidence = 0.9
        self.embed = nn.Linear(pixels, hidden)
        self.think = nn.Sequential(
            nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * hidden, hidden)
        )
        self.touch_up = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, classes)

    @to_static(backend="interpreter")  # eager's bits: what is trained here is held against eager
    def forward(self, images: Tensor) -> tuple[Tensor, int]:
        """The logits of each image, and how many refinements the batch took."""
        if images.max() > 1:  # raw scans count from 0 to 16
            images = images / 16
        state = torch.tanh(self.embed(images))
        logits = self.head(state)
        unsure = self.is_unsure(logits)
        steps = 0
        while unsure.any():
            if steps == self.patience:
                break
            if unsure.float().mean() > 0.25:
                update = self.think(state)
            else:  # only few are left: the cheaper step will do
                update = torch.tanh(self.touch_up(state))
            state = torch.where(unsure.unsqueeze(-1), self.norm(state + update), state)
            logits = self.head(state)
            unsure = self.is_unsure(logits)
            steps += 1
        return logits, steps

    def is_unsure(self, logits: Tensor) -> Tensor:
        """Of each image, whether even the likeliest class is not likely enough."""
        return logits.softmax(-1).amax(-1) < self.confidence
