"""``generate`` of Hugging Face transformers: models and ways of decoding that are captured whole, and refused ones."""

from __future__ import annotations

from typing import Any

import torch

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 5, "top_p": 0.9, "temperature": 0.7},
    "beam search": {"do_sample": False, "num_beams": 3},
    "static cache": {"do_sample": False, "cache_implementation": "static"},
}
"""The options of ``generate`` for a way of decoding."""

CAPTURED: tuple[tuple[str, str, bool, int | None], ...] = (
    ("gpt2", "greedy", False, None), ("gpt2", "greedy", True, 50), ("gpt2", "sampling", True, 50),
    ("t5", "greedy", True, None), ("bart", "greedy", False, None), ("gpt2", "beam search", False, None),
    ("t5", "beam search", True, None),
)  # fmt: skip
"""Model, way, whether it is given a mask, and the token that ends a sequence, if another than the model's."""

REFUSED: tuple[tuple[str, str, str, str], ...] = (
    ("gpt2", "static cache", "D2S245", "torch hangs an attribute on the tensors of the cache"),
)
"""Model, way, code, why."""

NEW = 8
"""So many tokens at most."""


def tokens(batch: int, length: int, seed: int) -> torch.Tensor:
    """Sequences without special tokens."""
    return torch.randint(3, 99, (batch, length), generator=torch.Generator().manual_seed(seed))


def mask(batch: int, length: int) -> torch.Tensor:
    """With padding at the beginning of the last sequence."""
    made = torch.ones(batch, length, dtype=torch.long)
    made[-1, :2] = 0
    return made
